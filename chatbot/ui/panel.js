// The page's own script, second part: memory, versions, search, settings, the live meter and the
// machine. Uses what keys.js has put into `localchat`; shows text as text, HTML only of the server.
(() => {
  'use strict';
  const { word, act, ask, dialog, actions, byId, upload, conversation } = localchat;
  const shell = () => byId('shell').classList;
  const wide = () => matchMedia('(min-width: 1181px)').matches;

  // ---- tabs of the panel ----
  const TABS = ['prompt', 'memory', 'machine', 'settings'];
  let tab = 'prompt';
  const showTab = (name) => {
    tab = TABS.includes(name) ? name : 'prompt';
    for (const other of TABS) shell().toggle(`tab-${other}`, other === tab);
    markTabs();
    if (tab === 'machine') refreshMachine();
  };
  // Drawn anew with each change of the language, so that the marks are set again.
  const markTabs = () => {
    for (const button of document.querySelectorAll('#panel-tabs [role=tab]')) {
      const chosen = button.dataset.tab === tab;
      if ((button.getAttribute('aria-selected') === 'true') === chosen && button.tabIndex === (chosen ? 0 : -1)) continue;
      button.setAttribute('aria-selected', chosen ? 'true' : 'false');
      button.tabIndex = chosen ? 0 : -1;
    }
  };
  const openPanel = () => {
    if (wide()) shell().remove('panel-closed');
    else { shell().remove('side-open'); shell().add('panel-open'); }
  };
  actions.tab = (button) => showTab(button.dataset.tab);
  actions.options = () => { showTab('settings'); openPanel(); };
  actions.prompt = () => { showTab('prompt'); openPanel(); };

  // ---- turns: edit, forget, versions, go to one ----
  const turnOf = (button) => button.closest('[data-turn]').dataset.turn;
  actions.edit = async (button) => {
    const turn = turnOf(button);
    const asked = await ask('question_text', { turn });
    if (asked.text === undefined) return;
    const key = { 0: 'edit.text_none', 1: 'edit.text_one' }[asked.later] || 'edit.text';
    const cut = word(key).replace('{count}', asked.later);
    const text = await dialog({ title: word('edit.title'), text: cut, button: word('edit.send'),
      value: asked.text, lines: 6 });
    if (text && text.trim()) localchat.trigger('edit', { turn, text });
  };
  actions.forget = async (button) => {
    const sure = await dialog({ title: word('forget.title'), text: word('forget.text'),
      button: word('forget.button'), danger: true });
    if (sure) act('forget', { id: turnOf(button) });
  };
  actions.version = (button) => act('version', { id: button.dataset.id });
  // The library scrolls to the end for a while after an update, so that once is not enough.
  const reveal = (id) => {
    const scroll = () => {
      const foot = footOf(id);
      if (!foot) return;
      const row = foot.closest('.message-row') || foot;
      row.scrollIntoView({ block: 'center' });
      row.classList.add('found');
      setTimeout(() => row.classList.remove('found'), 2400);
    };
    const timers = [0, 200, 450, 800].map((wait) => setTimeout(scroll, wait));
    addEventListener('wheel', () => timers.forEach(clearTimeout), { once: true, passive: true });
  };
  const footOf = (id) => document.querySelector(`#chat .foot[data-turn="${CSS.escape(id)}"]`);
  actions.goto = (button) => {
    const id = button.dataset.id;
    if (!wide()) shell().remove('panel-open');
    if (footOf(id)) { reveal(id); return; }
    act('goto', { id });
    // The older turns come with the next update.
    const until = Date.now() + 5000;
    const look = () => {
      if (footOf(id)) reveal(id);
      else if (Date.now() < until) setTimeout(look, 60);
    };
    look();
  };

  // ---- summary and facts ----
  actions['summary-edit'] = async () => {
    const value = await ask('summary_text', {});
    const text = await dialog({ title: word('memory.edit_summary'), button: word('dialog.save'),
      value, lines: 9 });
    if (text !== null) act('summary-edit', { text });
  };
  actions['fact-add'] = async () => {
    const text = await dialog({ title: word('memory.add'), button: word('dialog.save'), value: '', lines: 2 });
    if (text) act('fact-add', { text });
  };
  actions['fact-edit'] = async (button) => {
    const text = await dialog({ title: word('memory.edit_fact'), button: word('dialog.save'),
      value: button.dataset.text, lines: 2 });
    if (text) act('fact-edit', { id: button.dataset.id, text });
  };
  actions['fact-pin'] = (button) =>
    act('fact-pin', { id: button.dataset.id, on: button.getAttribute('aria-pressed') !== 'true' });
  actions['fact-delete'] = async (button) => {
    const sure = await dialog({ title: button.dataset.text, text: word('memory.delete_text'),
      button: word('side.delete'), danger: true });
    if (sure) act('fact-delete', { id: button.dataset.id });
  };

  // ---- list of chats: pin, search, import ----
  actions.pin = (button) => act('pin', { id: button.dataset.id, on: true });
  actions.unpin = (button) => act('pin', { id: button.dataset.id, on: false });
  actions.import = () => byId('import-files').click();
  const debounced = (wait, run) => {
    let timer = 0;
    return (...given) => { clearTimeout(timer); timer = setTimeout(() => run(...given), wait); };
  };
  // Each letter of a composing Korean word counts, so the value is read and not the keys.
  const search = debounced(150, () => act('search', { text: byId('search').value }));

  // ---- source: its page, with the words marked ----
  // The text is there at once; the page as a picture follows over it.
  const showPicture = async (place, which) => {
    if (!place) return;
    const address = await ask('picture', which);
    if (!address.startsWith('data:image/png;base64,')) return;
    const picture = new Image();
    picture.alt = place.dataset.label; picture.src = address;
    await picture.decode();
    place.append(picture);
    place.hidden = false;
    place.tabIndex = 0;
    place.scrollTop = markedAt(picture) * picture.height - place.clientHeight / 3;
    const quoted = place.parentElement.querySelector('mark.quoted');
    if (quoted) quoted.scrollIntoView({ block: 'nearest' });
  };
  // How far down the page the marked words begin, in [0, 1].
  const markedAt = (picture) => {
    const canvas = document.createElement('canvas');
    const { naturalWidth: width, naturalHeight: height } = picture;
    canvas.width = width; canvas.height = height;
    const drawing = canvas.getContext('2d', { willReadFrequently: true });
    drawing.drawImage(picture, 0, 0);
    const { data } = drawing.getImageData(0, 0, width, height);
    for (let at = 0; at < data.length; at += 4) {
      // Yellow: much red and green, little blue.
      if (data[at] > 200 && data[at + 1] > 180 && data[at] - data[at + 2] > 70) return at / 4 / width / height;
    }
    return 0;
  };
  actions.source = async (button) => {
    const which = { turn: turnOf(button), number: Number(button.dataset.number) };
    const html = await ask('source', which);
    if (!html) return;
    await dialog({ title: word('source.title'), html, button: word('dialog.close'), only: true,
      broad: true, opened: (box) => showPicture(box.querySelector('.page-picture'), which) });
  };

  actions.case = async () => localchat.download(await ask('case', {}));

  // ---- keys ----
  actions.keys = () => {
    const list = document.createElement('dl');
    list.className = 'keys-list';
    for (const line of word('keys.list').split('|')) {
      const [keys, meaning] = line.split('=');
      const dt = document.createElement('dt');
      for (const key of keys.split('+')) {
        const kbd = document.createElement('kbd'); kbd.textContent = key; dt.append(kbd);
      }
      const dd = document.createElement('dd'); dd.textContent = meaning;
      list.append(dt, dd);
    }
    return dialog({ title: word('keys.title'), node: list, button: word('dialog.close'), only: true });
  };
  document.addEventListener('keydown', (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    const held = event.ctrlKey || event.metaKey;
    if (held && !event.shiftKey && event.code === 'KeyK') {
      event.preventDefault();
      if (matchMedia('(max-width: 900px)').matches) shell().add('side-open');
      shell().remove('side-closed');
      byId('search').focus(); byId('search').select();
    } else if (held && event.key === '/') {
      event.preventDefault();
      if (!document.querySelector('dialog[open]')) actions.keys();
    } else if (held && event.shiftKey && event.code === 'KeyS') {
      event.preventDefault();
      actions.menu();
    } else if (event.target.getAttribute && event.target.getAttribute('role') === 'tab') {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      showTab(TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length]);
      document.querySelector(`#panel-tabs [data-tab="${tab}"]`).focus();
    }
  });

  // ---- settings ----
  actions.load = () => act('load', {});
  actions['use-demo'] = () => act('use-demo', {});
  actions['switch-dismiss'] = () => act('switch-dismiss', {});
  document.addEventListener('change', (event) => {
    const target = event.target;
    const kind = target.dataset ? target.dataset.act : '';
    if (target.id === 'import-files') {
      const files = [...target.files];
      target.value = '';
      upload(files, (tokens) => act('import', { tokens }));
    } else if (kind === 'setting') {
      // The browser's own check of a number; the server checks all of it again.
      const text = target.validity && target.validity.badInput ? 'not a number' : target.value;
      act('setting', { name: target.dataset.name, text });
    } else if (kind === 'system') act('system', { text: target.value });
    else if (kind === 'preset') {
      byId('system-text').value = target.value;
      act('system', { text: target.value });
    }
  });

  // ---- the live meter: what sending the draft would take ----
  const box = () => document.querySelector('#msg textarea');
  const meter = () => document.querySelector('#meter .html-container > div') || byId('meter');
  let counting = false; let again = false; let counted = '';
  const count = async () => {
    const text = box() ? box().value : '';
    const key = `${conversation()}\n${text}`;
    if (key === counted || document.querySelector('#msg .stop-button')) return;
    if (counting) { again = true; return; }
    counting = true;
    try {
      const html = await ask('meter', { text });
      counted = key;
      if (html && meter() && box().value === text) meter().innerHTML = html;
    } catch { /* the next letter asks again */ } finally {
      counting = false;
      if (again) { again = false; countSoon(); }
    }
  };
  const countSoon = debounced(350, count);
  document.addEventListener('input', (event) => {
    if (event.target === box()) countSoon();
    else if (event.target.id === 'search') search();
  });

  // ---- the machine, while it is looked at ----
  const refreshMachine = async () => {
    const live = byId('memory-live');
    if (!live || document.hidden || !live.offsetParent) return;
    try { const html = await ask('machine', {}); if (html) live.innerHTML = html; } catch { /* later */ }
  };
  setInterval(refreshMachine, 2000);

  // Older turns come by themselves when one scrolls up to their button.
  const autoEarlier = () => {
    const log = document.querySelector('#chat [role=log]');
    if (!log || log.dataset.earlier) return;
    log.dataset.earlier = '1';
    let asked = 0; let meant = 0;
    // Only where a person scrolls: the page itself does, too, when another chat is opened.
    for (const name of ['wheel', 'touchmove', 'pointerdown', 'keydown']) {
      log.addEventListener(name, () => { meant = Date.now(); }, { passive: true });
    }
    log.addEventListener('scroll', () => {
      const button = log.querySelector('.earlier button');
      if (button && log.scrollTop < 40 && Date.now() - meant < 3000 && Date.now() - asked > 1500) {
        asked = Date.now();
        const height = log.scrollHeight;
        act('earlier', {});
        const until = Date.now() + 4000;
        const hold = () => {
          if (log.scrollHeight > height) log.scrollTop += log.scrollHeight - height;
          else if (Date.now() < until) requestAnimationFrame(hold);
        };
        hold();
      }
    }, { passive: true });
  };
  localchat.onChange(() => {
    if (!byId('shell')) return;
    markTabs();
    autoEarlier();
    if (!TABS.some((name) => shell().contains(`tab-${name}`))) showTab(tab);
  });
})();
