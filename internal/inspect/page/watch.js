// watch.js reads what the store has of a tracking from time to time, and shows
// commands to copy.

import {el, visible} from './dom.js';
import {get} from './api.js';

const shortestPause = 3000; // ms between two reads
const longestPause = 60000;
const share = 20; // a pause is so many times as long as the read before it

/**
 * Watch asks for path with params() again and again, and calls shown(answer) if
 * the answer differs from the last one. A page that nobody sees asks nothing.
 */
export class Watch {
  constructor(session, path, params, shown, failed) {
    Object.assign(this, {session, path, params, shown, failed});
    this.onVisible = () => { if (!document.hidden && this.asking) this.now(); };
    document.addEventListener('visibilitychange', this.onVisible);
  }

  /** now asks at once. changed says that the params are others: the answer is shown in any case. */
  async now(changed) {
    clearTimeout(this.timer);
    this.asking?.abort();
    if (changed) this.last = null;
    const asking = this.asking = new AbortController();
    const began = performance.now();
    try {
      const answer = await get(this.path, this.params(), asking.signal);
      if (this.asking !== asking) return;
      const text = JSON.stringify({...answer, readAt: null});
      this.session.connected('');
      this.readAt = new Date();
      if (text !== this.last) this.shown(answer);
      else this.unchanged?.();
      this.last = text;
    } catch (error) {
      if (error.name === 'AbortError' || this.asking !== asking) return;
      if (error.status === 401) {
        this.session.connected('ended');
        return;
      }
      if (this.last && error.status === 0) {
        this.session.connected('reconnecting');
      } else {
        this.last = null;
        this.failed(error);
      }
    }
    const pause = Math.min(Math.max(shortestPause, share * (performance.now() - began)), longestPause);
    this.timer = setTimeout(() => { if (!document.hidden) this.now(); }, pause);
  }

  close() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.asking = null;
    document.removeEventListener('visibilitychange', this.onVisible);
  }
}

export function command(session, text) {
  return el('div', {class: 'command'},
    el('code', {}, visible(text)),
    el('button', {type: 'button', 'aria-label': `Copy: ${text}`, 'data-key': text, onclick: () => session.copy(text, 'Command copied')}, 'Copy'));
}

/** moveKeys focuses the next of nodes for j, the previous for k, and returns whether it did. */
export function moveKeys(event, nodes) {
  if (event.key !== 'j' && event.key !== 'k') return false;
  const all = [...nodes()];
  const at = all.findIndex((node) => node.contains(document.activeElement));
  const to = all[at < 0 ? 0 : Math.min(Math.max(at + (event.key === 'j' ? 1 : -1), 0), all.length - 1)];
  to?.focus();
  to?.scrollIntoView({block: 'nearest'});
  return Boolean(to);
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
