// The page's own script: sends files, asks the server, keys, dialogs. It only ever shows text that
// the server has escaped, or sets text as text.
(() => {
  'use strict';
  const byId = (id) => document.getElementById(id);
  const word = (key) => {
    const found = document.querySelector(`#words [data-key="${key}"]`);
    return found ? found.textContent : '';
  };
  let trigger = () => {};
  let server = null;

  const saved = (key) => {
    try { return localStorage.getItem(`localchat.${key}`) || ''; } catch { return ''; }
  };
  const save = (key, value) => {
    try { localStorage.setItem(`localchat.${key}`, value); } catch { /* private window */ }
  };
  const conversation = () => {
    const box = document.querySelector('#cid textarea, #cid input');
    return box ? box.value : '';
  };
  const ask = (name, data) =>
    server[name]({ ...data, language: document.documentElement.lang, conversation: conversation() });
  const act = (name, data) => trigger('act', { act: name, ...data });

  // The address holds the chat, so that a reload or a second tab opens it.
  const address = (id) => {
    const url = new URL(location.href);
    if (id) url.searchParams.set('c', id); else url.searchParams.delete('c');
    history.replaceState(null, '', url);
    clearTimeout(warming);
    // Once the chat is on the screen.
    if (id) warming = setTimeout(() => { if (server) ask('warm', {}).catch(() => {}); }, 800);
  };
  let warming = 0;

  // The library sets the direction of every message in every update of a growing reply, and the
  // browser then styles all of them anew; a value that stays the same need not be set.
  const direction = Object.getOwnPropertyDescriptor(HTMLElement.prototype, 'dir');
  Object.defineProperty(HTMLElement.prototype, 'dir', { ...direction,
    set(value) { if (this.getAttribute('dir') !== value) direction.set.call(this, value); } });

  // ---- theme ----
  const dark = (on) => document.body.classList.toggle('dark', on);
  const applyTheme = () => { const choice = saved('theme'); if (choice) dark(choice === 'dark'); };

  // ---- dialog: resolves to the text or true; null when it was left ----
  // `lines` makes the field several lines high, `html` comes from the server, `node` is a part of
  // the page; with `only` there is nothing but a button to close it. `opened` gets the dialog.
  const dialog = ({ title, text, button, value, danger, lines, html, node, only, broad, opened }) => new Promise((resolve) => {
    const before = document.activeElement;
    const box = document.createElement('dialog');
    box.className = `localchat-dialog${broad ? ' broad' : ''}`;
    box.setAttribute('aria-label', title);
    const form = document.createElement('form');
    form.method = 'dialog';
    const heading = document.createElement('h2');
    heading.textContent = title;
    form.append(heading);
    if (text) { const p = document.createElement('p'); p.textContent = text; form.append(p); }
    let input = null;
    if (value !== undefined) {
      input = document.createElement(lines ? 'textarea' : 'input');
      input.value = value; input.setAttribute('aria-label', title);
      if (lines) {
        input.rows = lines;
        input.addEventListener('keydown', (event) => {
          if (event.isComposing || event.keyCode === 229) return;
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
        });
      } else input.maxLength = 200;
      form.append(input);
    }
    if (html) {
      const part = document.createElement('div');
      part.className = 'part'; part.innerHTML = html; form.append(part);
    }
    if (node) form.append(node);
    const row = document.createElement('div');
    row.className = 'buttons';
    const no = document.createElement('button');
    no.type = 'button'; no.textContent = word('dialog.cancel'); no.className = 'quiet';
    const yes = document.createElement('button');
    yes.type = 'submit'; yes.textContent = button; yes.className = danger ? 'danger' : 'primary';
    yes.dataset.confirm = '1';
    if (!only) row.append(no);
    row.append(yes); form.append(row); box.append(form);
    const end = (result) => {
      box.close(); box.remove(); resolve(result);
      if (before && before.isConnected) before.focus();
    };
    no.addEventListener('click', () => end(null));
    box.addEventListener('cancel', (event) => { event.preventDefault(); end(null); });
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      // A composed Korean word is finished by Enter, which must not submit.
      end(input ? input.value : true);
    });
    document.body.append(box);
    box.showModal();
    if (input && lines) { input.focus(); input.setSelectionRange(value.length, value.length); }
    else if (input) input.select(); else (only ? yes : no).focus();
    const quoted = box.querySelector('mark.quoted');
    if (quoted) quoted.scrollIntoView({ block: 'center' });
    if (opened) opened(box);
  });

  // ---- uploads ----
  const sendOne = (file, row) => new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open('POST', '/local/upload');
    request.setRequestHeader('X-File-Name', encodeURIComponent(file.name));
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) row.bar.style.width = `${(100 * event.loaded) / event.total}%`;
    };
    request.onload = () => {
      if (request.getResponseHeader('x-chat-login') === 'needed') localchat.loggedOut();
      let answer = {};
      try { answer = JSON.parse(request.responseText); } catch { /* answered below */ }
      if (request.status === 200 && answer.token) resolve({ token: answer.token });
      else {
        const reason = answer.error || (request.status >= 500 ? 'not_saved' : 'refused');
        resolve({ name: file.name, reason });
      }
    };
    request.onerror = () => resolve({ name: file.name, reason: 'lost' });
    request.send(file);
  });
  const sendingRow = (file) => {
    const row = document.createElement('li');
    row.className = 'item job';
    const name = document.createElement('span');
    name.className = 'name'; name.textContent = file.name;
    const facts = document.createElement('span');
    facts.className = 'facts'; facts.textContent = word('upload.sending');
    const track = document.createElement('span');
    track.className = 'progress';
    const bar = document.createElement('i');
    bar.style.width = '0%';
    track.append(bar); row.append(name, facts, track);
    const list = byId('sending');
    if (list) list.append(row);
    return { row, bar };
  };
  const upload = async (files, done) => {
    const button = document.querySelector('#upload .drop');
    const limit = 1048576 * Number(button ? button.dataset.limit : 0);
    const tokens = []; const failed = [];
    for (const file of files) {
      // Too large a file need not travel first; the server checks again.
      if (limit && file.size > limit) { failed.push({ name: file.name, reason: 'too_large' }); continue; }
      const shown = sendingRow(file);
      const result = await sendOne(file, shown);
      shown.row.remove();
      if (result.token) tokens.push(result.token); else failed.push(result);
    }
    if (done) { if (tokens.length) done(tokens); if (failed.length) trigger('uploaded', { tokens: [], failed }); }
    else if (tokens.length || failed.length) trigger('uploaded', { tokens, failed });
  };

  // ---- small actions ----
  const setBox = (text) => {
    const box = document.querySelector('#msg textarea');
    if (!box) return;
    box.value = text;
    box.dispatchEvent(new Event('input', { bubbles: true }));
    box.focus();
  };
  const download = ({ name, text }) => {
    if (text === undefined) return;
    const link = document.createElement('a');
    const type = name.endsWith('.json') ? 'application/json' : 'text/markdown;charset=utf-8';
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const copy = async (button) => {
    const turn = button.closest('[data-turn]').dataset.turn;
    await navigator.clipboard.writeText(await ask('reply_text', { turn }));
    button.classList.add('done');
    button.setAttribute('aria-label', word('chat.copied'));
    setTimeout(() => button.classList.remove('done'), 1500);
  };
  // On the part that Gradio's scoping of styles reaches, which <body> is not.
  const shell = () => byId('shell').classList;
  const closeDrawers = () => shell().remove('side-open', 'panel-open');
  const narrow = (name = 'side') =>
    matchMedia(`(max-width: ${name === 'panel' ? 1180 : 900}px)`).matches;
  const flip = (name) => {
    if (!narrow(name)) shell().toggle(`${name}-closed`);
    else {
      const open = shell().contains(`${name}-open`);
      closeDrawers();
      shell().toggle(`${name}-open`, !open);
    }
  };
  const actions = {
    open: (b) => { act('open', { id: b.dataset.id }); closeDrawers(); },
    new: () => { act('new', {}); closeDrawers(); const box = document.querySelector('#msg textarea'); if (box) box.focus(); },
    earlier: () => act('earlier', {}),
    dismiss: (b) => act('dismiss', { id: b.dataset.id }),
    retry: () => trigger('retry', {}),
    suggest: (b) => setBox(b.textContent),
    copy,
    export: async (b) => download(await ask('export', { format: b.dataset.format })),
    menu: () => flip('side'),
    panel: () => flip('panel'),
    theme: () => {
      const on = !document.body.classList.contains('dark');
      dark(on); save('theme', on ? 'dark' : 'light');
    },
    pick: () => byId('upload-files').click(),
    rename: async (b) => {
      const title = await dialog({
        title: word('dialog.rename_title'), button: word('dialog.rename'), value: b.dataset.name });
      if (title) act('rename', { id: b.dataset.id, title });
    },
    delete: async (b) => {
      const sure = await dialog({ title: b.dataset.name, text: word('dialog.delete_text'),
        button: word('dialog.delete'), danger: true });
      if (sure) act('delete', { id: b.dataset.id });
    },
    remove: async (b) => {
      const sure = await dialog({ title: b.dataset.name, text: word('dialog.remove_text'),
        button: word('dialog.remove'), danger: true });
      if (sure) act('remove', { id: b.dataset.id });
    },
  };

  document.addEventListener('click', (event) => {
    const button = event.target.closest('button[data-act]');
    if (button) {
      const action = actions[button.dataset.act];
      if (action) { event.preventDefault(); action(button); }
      return;
    }
    if (narrow('panel') && event.target.closest('#main') && !event.target.closest('#top')) closeDrawers();
  });
  document.addEventListener('change', (event) => {
    const target = event.target;
    if (target.id === 'upload-files') {
      const files = [...target.files];
      target.value = '';
      upload(files);
    } else if (target.dataset.act === 'use') {
      act('use', { id: target.dataset.id, on: target.checked });
    } else if (target.dataset.act === 'language') {
      save('language', target.value);
      act('language', { value: target.value });
    }
  });

  // The pieces of a prompt are fetched when its line is opened ('toggle' does not bubble).
  document.addEventListener('toggle', async (event) => {
    const fold = event.target;
    if (!fold.open || !fold.classList || !fold.classList.contains('trace') || fold.dataset.filled) return;
    fold.dataset.filled = '1';
    const turn = fold.closest('[data-turn]').dataset.turn;
    fold.querySelector('.trace-body').innerHTML = await ask('trace', { turn });
  }, true);

  // ---- files dropped anywhere ----
  const hasFiles = (event) => event.dataTransfer && [...event.dataTransfer.types].includes('Files');
  let depth = 0;
  document.addEventListener('dragenter', (event) => {
    if (hasFiles(event)) { depth += 1; document.body.classList.add('dropping'); }
  });
  document.addEventListener('dragleave', (event) => {
    if (hasFiles(event) && --depth <= 0) { depth = 0; document.body.classList.remove('dropping'); }
  });
  document.addEventListener('dragover', (event) => { if (hasFiles(event)) event.preventDefault(); });
  document.addEventListener('drop', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = 0;
    document.body.classList.remove('dropping');
    upload([...event.dataTransfer.files]);
  });

  // ---- keys ----
  document.addEventListener('keydown', (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === 'Escape' && !document.querySelector('dialog[open]')) {
      if (event.shiftKey) { const box = document.querySelector('#msg textarea'); if (box) box.focus(); return; }
      const stop = document.querySelector('#msg .stop-button');
      if (stop) stop.click(); else closeDrawers();
    } else if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.code === 'KeyO') {
      event.preventDefault();
      actions.new();
    }
  });

  // ---- what the page library does not label by itself ----
  const DECODE = { '&#x0003c;': '<', '&#x00026;': '&' };
  const decode = (text) => text.replace(/&#x0003c;|&#x00026;/g, (m) => DECODE[m])
    .replace(/&#x000([0-9a-f]{2});/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
  // The library names each message in English, with its markup; it does so again in every update.
  const nameMessage = (part, language) => {
    const theirs = /^(?:bot|user)'s message: ([^]*)$/.exec(part.getAttribute('aria-label'));
    if (theirs) part.said = decode(theirs[1]).replace(/<\/?mark[^<>]*>/g, '');
    if (part.said === undefined) return;
    const about = part.said.startsWith('a component of type');
    const key = about ? 'chat.about' : `chat.${part.dataset.testid === 'user' ? 'question' : 'reply'}`;
    part.setAttribute('aria-label', about ? word(key) : `${word(key)}: ${part.said}`);
    part.dataset.words = language;
  };
  const label = () => {
    const words = byId('words');
    // The same language set again would style the whole page anew.
    if (words && document.documentElement.lang !== words.lang) document.documentElement.lang = words.lang;
    const note = JSON.stringify(word('warn.title'));
    const root = document.documentElement.style;
    if (root.getPropertyValue('--word-note') !== note) root.setProperty('--word-note', note);
    const box = document.querySelector('#msg textarea');
    if (box) box.setAttribute('aria-label', word('box.label'));
    for (const [name, key] of [['submit', 'box.send'], ['stop', 'box.stop']]) {
      const button = document.querySelector(`#msg .${name}-button`);
      if (button && button.title !== word(key)) {
        button.title = word(key);
        button.setAttribute('aria-label', word(key));
      }
    }
    const language = document.documentElement.lang;
    const stale = `#chat [data-testid][aria-label*="'s message: "], #chat [data-words]:not([data-words="${language}"])`;
    for (const part of document.querySelectorAll(stale)) nameMessage(part, language);
    for (const [place, key] of [['[role=log]', 'chat.label'], ['.scroll-down-button-container button', 'chat.down']]) {
      const part = document.querySelector(`#chat ${place}`);
      if (part && part.getAttribute('aria-label') !== word(key)) {
        part.setAttribute('aria-label', word(key));
        if (part.title) part.title = word(key);
      }
    }
  };
  const listeners = [];
  const watch = () => {
    applyTheme();
    let due = false;
    new MutationObserver(() => {
      if (due) return;
      due = true;
      requestAnimationFrame(() => { due = false; label(); listeners.forEach((run) => run()); });
    }).observe(document.body, { childList: true, subtree: true });
  };
  if (document.body) watch(); else document.addEventListener('DOMContentLoaded', watch);

  // For the second part of the script, and for the page itself.
  window.localchat = {
    saved, address, word, act, ask, dialog, actions, byId, upload, conversation, download, setBox,
    trigger: (name, data) => trigger(name, data),
    connect: (send, functions) => { trigger = send; server = functions; },
    onChange: (run) => listeners.push(run),
  };
})();
