// command.js shows commands to copy, and keeps the place of a reader when what is shown changes.

import {el, visible} from './dom.js';

export function command(session, text) {
  return el('div', {class: 'command'},
    el('code', {}, visible(text)),
    el('button', {type: 'button', 'aria-label': `Copy: ${text}`, 'data-key': text, onclick: () => session.copy(text, 'Command copied')}, 'Copy'));
}

/** keepPlace calls draw, and restores the focus, and what is unfolded, of what has a data-key, and the scroll position. */
export function keepPlace(root, draw) {
  const scroller = root.closest('main');
  const {scrollTop} = scroller;
  const key = root.contains(document.activeElement) ? document.activeElement.closest('[data-key]')?.dataset.key : undefined;
  const summaries = () => [...root.querySelectorAll('summary[data-key]')];
  const open = new Map(summaries().map((node) => [node.dataset.key, node.parentElement.open]));
  draw();
  for (const node of summaries()) node.parentElement.open = open.get(node.dataset.key) ?? node.parentElement.open;
  if (key !== undefined && !root.contains(document.activeElement)) {
    [...root.querySelectorAll('[data-key]')].find((node) => node.dataset.key === key)?.focus({preventScroll: true});
  }
  scroller.scrollTop = scrollTop;
}
