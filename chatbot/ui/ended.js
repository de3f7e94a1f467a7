// The page's own script, third part: what happens when the program ends or cannot be reached any
// more. Nothing on the page works then, so it says that, waits for the program, and comes back.
(() => {
  'use strict';
  const { word } = localchat;
  const LOOK_MS = 1500;
  const theirs = window.fetch;
  const ends = (answer) => answer.headers.get('x-chat-ended') !== null;
  const wait = () => new Promise((done) => { setTimeout(done, LOOK_MS); });

  const isThere = async () => {
    try { return !ends(await theirs('/local/login', { cache: 'no-store' })); } catch { return false; }
  };

  let over = false;
  const show = async () => {
    if (over) return;
    over = true;
    const told = document.createElement('div');
    told.id = 'ended';
    told.className = 'status failed';
    told.setAttribute('role', 'alert');
    for (const [kind, key] of [['strong', 'ended.title'], ['span', 'ended.text']]) {
      const part = document.createElement(kind);
      part.textContent = word(key);
      told.append(part);
    }
    const place = document.querySelector('#status');
    if (place) place.before(told); else document.body.prepend(told);
    // Whatever still turns or offers to stop would say that something goes on.
    document.querySelector('#shell')?.classList.add('ended');
    do await wait(); while (!await isThere());
    location.reload();
  };

  window.fetch = async (...given) => {
    let answer;
    try {
      answer = await theirs(...given);
    } catch (error) {
      // One request may fail by itself, and all do when the page is left.
      if (error.name !== 'AbortError') wait().then(isThere).then((there) => { if (!there) show(); });
      throw error;
    }
    if (!ends(answer)) return answer;
    show();
    // The library would show the answer's text as an error of its own.
    return new Promise(() => {});
  };
})();
