// The page's own script, fourth part: what happens when the page is left or loaded again, when the
// person is no longer logged in, or somebody else has logged in in this browser. The draft is kept
// for whoever wrote it.
(() => {
  'use strict';
  const { word, dialog, setBox, conversation } = localchat;
  const KEY = 'localchat.draft';
  const user = () => {
    const shown = document.querySelector('#side-foot .user');
    return shown ? shown.dataset.user : '';
  };
  const box = () => document.querySelector('#msg textarea');

  // The draft for when the page is back; returns the chat that it belongs to.
  const keepDraft = () => {
    const id = conversation();
    try {
      sessionStorage.setItem(KEY, JSON.stringify({ user: user(), id, text: box() ? box().value : '' }));
    } catch { /* private window */ }
    return id;
  };
  window.addEventListener('pagehide', keepDraft);

  let asking = false;
  const leave = async () => {
    if (asking || !user()) return;
    asking = true;
    const again = await dialog({ title: word('login.again_title'), text: word('login.again_text'),
      button: word('login.go'), only: true });
    asking = false;
    if (!again) return;
    const id = keepDraft();
    location.href = `/local/login${id ? `?c=${encodeURIComponent(id)}` : ''}`;
  };
  localchat.loggedOut = leave;

  // The library would show the answer's text as an error of its own, and leave its parts unusable.
  const theirs = window.fetch;
  window.fetch = async (...given) => {
    const answer = await theirs(...given);
    if (answer.headers.get('x-chat-login') !== 'needed') return answer;
    leave();
    return new Promise(() => {});
  };

  const bringBack = () => {
    let kept = null;
    try {
      kept = JSON.parse(sessionStorage.getItem(KEY));
      sessionStorage.removeItem(KEY);
    } catch { /* nothing kept */ }
    // The page learns from its address which chat it shows.
    const id = new URLSearchParams(location.search).get('c') || '';
    if (kept && kept.text && kept.user === user() && kept.id === id && !box().value) setBox(kept.text);
  };
  // With the foot of the side, which says who is here.
  const isDrawn = () => document.querySelector('#language') && box();
  let looked = false;
  localchat.onChange(() => { if (!looked && isDrawn()) { looked = true; bringBack(); } });
})();
