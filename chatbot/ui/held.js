// The page's own script, fifth part: what the library's updates would leave as it was. They change
// the page in place, row by row, so that a box that a person has ticked stays ticked when its row
// becomes another document's; they leave the view where it was scrolled to; and they empty the box
// of what was sent, with whatever was typed since.
(() => {
  'use strict';
  const { act, actions, onChange, setBox } = localchat;

  // ---- ticks of the documents: what the server says, but for one just made ----
  const SETTLE_MS = 1500;
  const justMade = new Map();
  const follow = () => {
    for (const box of document.querySelectorAll('#documents input[data-act=use]')) {
      if (Date.now() - (justMade.get(box.dataset.id) || 0) < SETTLE_MS) continue;
      const told = box.hasAttribute('checked');
      if (box.checked !== told) box.checked = told;
    }
  };
  document.addEventListener('change', (event) => {
    if (event.target.dataset.act !== 'use') return;
    justMade.set(event.target.dataset.id, Date.now());
    setTimeout(follow, SETTLE_MS + 50);
  });
  const watch = () => new MutationObserver(follow).observe(document.body, {
    subtree: true, attributes: true, attributeFilter: ['checked', 'data-id'] });
  if (document.body) watch(); else document.addEventListener('DOMContentLoaded', watch);
  actions['use-all'] = () => act('use-all', {});

  // ---- a question that was just sent comes into view, wherever the person had scrolled to ----
  const SENT_MS = 5000;
  let sentAt = 0; let before = null;
  const newest = () => [...document.querySelectorAll('#chat [data-testid=user]')].pop() || null;
  const BOX = '#msg textarea';
  const isBox = (target) => target.matches && target.matches(BOX);
  // What was sent and still stands in the box, and what stood there last.
  let text = null; let typed = '';
  const sent = () => {
    sentAt = Date.now(); before = newest();
    text = typed = document.querySelector(BOX).value;
  };
  document.addEventListener('keydown', (event) => {
    const sends = event.key === 'Enter' && !event.shiftKey && !event.isComposing;
    if (sends && isBox(event.target) && event.target.value.trim()) sent();
  }, true);
  document.addEventListener('click', (event) => {
    if (event.target.closest('#msg .submit-button')) sent();
  }, true);
  document.addEventListener('input', (event) => {
    if (text !== null && isBox(event.target)) typed = event.target.value;
  }, true);
  const giveBack = () => {
    const box = document.querySelector(BOX);
    if (text === null || !box || box.value === typed) return;
    const rest = typed.startsWith(text) ? typed.slice(text.length) : typed;
    text = null;
    if (rest && !box.value) setBox(rest);
  };
  onChange(() => {
    follow();
    giveBack();
    if (!sentAt) return;
    const log = document.querySelector('#chat [role=log]');
    if (Date.now() - sentAt > SENT_MS) sentAt = 0;
    else if (log && newest() !== before) { sentAt = 0; log.scrollTop = log.scrollHeight; }
  });
})();
