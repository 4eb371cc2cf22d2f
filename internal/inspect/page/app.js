// app.js is the page's frame: it opens the session, shows the view that the
// address names, and holds the keys that work everywhere.
//
// The address is #/VIEW[/ID][?NAME=VALUE…]. A view is a module with
//
//   show(root, params, session) -> {close(), update(params), key(event), keys, title}
//
// root is an empty element; params are texts. key gets keys that no control took, and
// returns true for one it took. keys is a list of [keys, meaning] for the help. An element
// with data-focus gets the focus when the view replaces another, one with data-search with /.

import {el, replace, setText, dialog, visible} from './dom.js';
import {openSession, takeToken} from './api.js';
import {parse, link} from './address.js';
import * as deliveries from './deliveries.js';
import * as tracking from './tracking.js';

const views = {deliveries, tracking};

const main = document.getElementById('main');
const live = document.getElementById('live');
const connection = document.getElementById('connection');

let session;
let current = {name: '', view: null}; // what is shown

// What views may use of the frame, beside the values of GET /session.
const frame = {
  link,
  /**
   * go shows a view; replace leaves no entry in the browser's history. A timer of a
   * view that the address has left replaces nothing.
   */
  go(name, params, {replace: instead = false} = {}) {
    const hash = link(name, params);
    if (hash === location.hash || instead && parse(location.hash).name !== name) return;
    history[instead ? 'replaceState' : 'pushState'](null, '', hash);
    route();
  },
  /** announce has a screen reader say text; the same text twice is said twice. */
  announce(text) {
    live.textContent = '';
    setTimeout(() => setText(live, text), 50);
  },
  /** connected shows the state of the stream: live, reconnecting, lost, ended or empty. */
  connected(state) {
    const words = {live: 'Live', reconnecting: 'Reconnecting…', lost: 'Not connected, still trying', ended: 'Not connected: open the URL that waybill printed'};
    connection.dataset.state = state;
    setText(connection, words[state] ?? '');
  },
  async copy(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      this.announce(what);
    } catch {
      this.announce('The browser did not allow copying');
    }
  },
  /** failed returns what to show of an error: its message, and what to do. */
  failed(error, again) {
    return el('div', {class: 'message tone-bad', role: 'alert'},
      el('p', {}, sentence(error.message)),
      error.hint && el('p', {class: 'hint'}, sentence(error.hint)),
      again && el('button', {type: 'button', onclick: again}, 'Try again'));
  },
};

// Errors of the program have the form of the command line: lower case, no full stop.
const sentence = (text) => text && text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');

function route() {
  const {name, params} = parse(location.hash);
  if (current.name === name && current.view) {
    current.view.update(params);
    shown(name, current.view);
    return;
  }
  if (!views[name]) {
    shown(name, null);
    replace(main, el('p', {class: 'message'}, `There is no view "${visible(name)}". `, el('a', {href: '#/deliveries'}, 'Show deliveries')));
    return;
  }
  const loseFocus = current.name !== '' && main.contains(document.activeElement);
  shown(name, null);
  const root = el('div', {class: `view view-${name}`});
  replace(main, root);
  shown(name, views[name].show(root, params, session));
  if (loseFocus && !main.contains(document.activeElement)) (root.querySelector('[data-focus]') ?? main).focus({preventScroll: true});
}

// shown ends the view before, and makes view the one that is shown.
function shown(name, view) {
  if (current.view && current.view !== view) current.view.close();
  if (current.view !== view) frame.connected('');
  current = {name, view};
  document.title = `${view?.title ?? name[0].toUpperCase() + name.slice(1)} – waybill`;
}

const commonKeys = [
  ['/', 'go to the search'],
  ['?', 'this list'],
  ['Esc', 'leave a box, close what is open'],
];

function help() {
  const rows = [...(current.view?.keys ?? []), ...commonKeys].map(([keys, meaning]) => el('tr', {},
    el('th', {scope: 'row'}, keys.split(' ').flatMap((key) => [el('kbd', {}, key), ' '])), el('td', {}, meaning)));
  dialog('Keyboard shortcuts', el('table', {class: 'keys'}, el('tbody', {}, rows)));
}

const takesText = (node) => node instanceof HTMLElement && (node.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(node.tagName));

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (document.querySelector('dialog[open]') || takesText(event.target) && event.key !== 'Escape') return;
  if (handled(event)) event.preventDefault();
}

function handled(event) {
  if (current.view?.key(event)) return true;
  switch (event.key) {
    case '?':
      help();
      return true;
    case '/': {
      const box = main.querySelector('[data-search]');
      box?.focus();
      box?.select?.();
      return Boolean(box);
    }
    case 'Escape':
      if (!takesText(event.target)) return false;
      main.focus({preventScroll: true});
      return true;
  }
  return false;
}

async function start() {
  try {
    session = {...await openSession(), ...frame};
  } catch (error) {
    replace(main, frame.failed(error, start));
    if (error.status === 401) frame.connected('ended');
    return;
  }
  replace(document.getElementById('about'),
    session.readOnly && el('span', {class: 'badge tone-caution'}, 'read-only'),
    session.listener && el('span', {class: 'listener', title: 'Webhooks are received here'}, visible(session.listener)),
    session.account && el('span', {class: 'account', title: `Account; store ${session.store}`}, visible(session.account)));
  document.addEventListener('keydown', onKey);
  document.getElementById('help').addEventListener('click', help);
  document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault(); // the address is the view's
    main.focus();
  });
  route();
}

addEventListener('popstate', () => {
  if (takeToken()) location.reload(); // the URL of another process was opened in this tab
  else if (session) route();
});
takeToken();
await start();
