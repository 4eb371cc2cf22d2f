// deliveries.js shows the list of deliveries, live, and beside it the one that is
// open. The address holds the search and the open delivery.
//
// The module delivery.js shows the open one: show(root, id, session) returns
// {close(), refresh(), send()}; send opens the dialog that sends it again.

import {el, replace, setText, count, tabSeparated} from './dom.js';
import {get, stream} from './api.js';
import {VirtualList} from './virtual.js';
import {NumberedRows, FoundRows} from './rows.js';
import {columns, makeRow, copyCells} from './deliveryrow.js';
import * as delivery from './delivery.js';

const typingPause = 300; // ms without a key before a search begins
const openPause = 120; // ms on a row before it opens, while moving over rows
const refreshEvery = 1000; // ms between questions for what is visible, while the store changes
const mostCopied = 1000; // rows at once
const announceEvery = 10000; // ms between announcements of what arrived

export function show(root, params, session) {
  return new Deliveries(root, params, session);
}

class Deliveries {
  title = 'Deliveries';
  keys = [
    ['j ↓', 'next delivery'],
    ['k ↑', 'previous delivery'],
    ['Shift+↓ Shift+↑', 'select several; Ctrl+C copies them with tabs'],
    ['Enter', 'open'],
    ['r', 'send again'],
    ['n', 'jump to the newest'],
    ['p', 'pause or resume'],
  ];

  params = {};
  rows = null; // NumberedRows or FoundRows
  active = null; // number of the row that the keys act on
  anchor = null; // number of the other end of the selection
  paused = false;
  unseen = 0; // new rows above what is visible
  unannounced = 0;

  constructor(root, params, session) {
    Object.assign(this, {root, session});
    this.build();
    this.list = new VirtualList(this.grid, this.head, this.body, this);
    this.timer = setInterval(() => this.refresh(), refreshEvery);
    this.update(params, true);
  }

  build() {
    this.search = el('input', {
      type: 'search', name: 'search', placeholder: 'Search in bodies, or event=router.delivered,is=failed', class: 'search-input mono', 'aria-label': 'Search, or filter by KEY=VALUE',
      'aria-describedby': 'search-problem', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', 'data-search': '', oninput: () => this.typed(typingPause),
    });
    this.problem = el('p', {class: 'problem', id: 'search-problem', role: 'status'});
    const button = (onclick, attributes) => el('button', {type: 'button', onclick, ...attributes});
    this.refusedButton = button(() => this.go({refused: this.params.refused ? '' : '1', id: undefined}), {title: 'Deliveries that were answered 401'});
    this.pauseButton = button(() => this.pause(!this.paused), {class: 'pause', 'aria-keyshortcuts': 'p'});
    this.newestButton = button(() => this.jumpToNewest(), {class: 'newest', 'aria-keyshortcuts': 'n'});
    const bar = el('form', {class: 'bar', role: 'search', onsubmit: (event) => { event.preventDefault(); this.typed(0); }},
      el('div', {class: 'search-box'}, this.search, this.problem), this.refusedButton, this.pauseButton, this.newestButton);
    this.status = el('div', {class: 'status-line'});
    this.message = el('div', {class: 'list-message'});
    this.pane = el('section', {class: 'pane', tabindex: '-1', hidden: true});
    this.root.append(
      el('h1', {class: 'unseen'}, 'Deliveries'),
      el('div', {class: 'list-part'}, bar, this.message, this.buildGrid(), this.status), this.pane);
  }

  buildGrid() {
    this.head = el('div', {class: 'row head', role: 'row', 'aria-rowindex': '1'},
      columns.map(([name, title]) => el('div', {class: `cell ${name}`, role: 'columnheader'}, title)));
    this.body = el('div', {class: 'rows', role: 'rowgroup'});
    this.grid = el('div', {class: 'grid', role: 'grid', tabindex: '0', 'data-focus': '', 'aria-label': 'Deliveries, newest first', 'aria-multiselectable': 'true'},
      el('div', {class: 'head-group', role: 'rowgroup'}, this.head), this.body);
    this.grid.addEventListener('mousedown', (event) => { if (event.shiftKey) event.preventDefault(); });
    this.grid.addEventListener('click', (event) => this.clicked(event));
    this.grid.addEventListener('copy', (event) => this.copied(event));
    this.grid.addEventListener('focus', () => {
      if (this.active === null && this.rows?.count && this.grid.matches(':focus-visible')) this.activate(this.rows.numberAt(this.firstVisible ?? 0));
    });
    return this.grid;
  }

  update(params, first) {
    const before = this.params;
    this.params = /^refused:/.test(params.id) ? {...params, refused: '1'} : params;
    params = this.params;
    const same = ['search', 'refused'].every((name) => (before[name] ?? '') === (params[name] ?? ''));
    if (first || !same) this.load();
    if (first || before.id !== params.id) this.openPane(params.id);
  }

  go(changes, options) {
    this.session.go('deliveries', {...this.params, ...changes}, options);
  }

  typed(pause) {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.go({search: this.search.value.trim()}, {replace: true}), pause);
  }

  async load() {
    const {search = '', refused} = this.params;
    this.showButtons();
    if (this.search.value.trim() !== search) this.search.value = search;
    this.loading?.abort();
    const {signal} = this.loading = new AbortController();
    this.grid.setAttribute('aria-busy', 'true');
    try {
      const ask = (more) => get('/deliveries', {refused, ...('from' in more ? more : {search, limit: 100, ...more})}, signal);
      this.loaded(ask, await ask({}));
    } catch (error) {
      if (!signal.aborted) this.notLoaded(error);
    } finally {
      if (!signal.aborted) this.grid.removeAttribute('aria-busy');
    }
  }

  loaded(ask, answer) {
    this.showProblem('');
    replace(this.message);
    this.rows?.close();
    const handlers = {changed: (numbers) => { this.list.changed(numbers); this.renderSoon(); }};
    if (this.params.search || this.params.refused) {
      this.rows = new FoundRows(ask, handlers, answer);
    } else {
      this.rows = new NumberedRows(ask, handlers, {first: Math.max(1, answer.first), last: answer.last});
      this.rows.arrive(answer.deliveries, answer.last);
      this.rows.release();
    }
    this.unseen = 0;
    this.active = null;
    this.activateOpen();
    this.showCounts(); // before scrolling: the line with them takes room
    this.list.changed();
    const index = this.active === null ? 0 : this.rows.indexOf(this.active);
    if (index > 0) this.list.scrollTo(Math.min(index + 5, this.rows.count - 1));
    this.list.scrollTo(index);
    this.follow(answer.last);
    if (this.rows instanceof FoundRows) this.session.announce(this.statusText());
  }

  notLoaded(error) {
    const wrong = error.status === 400 && this.params.search;
    this.showProblem(wrong ? error.message : '');
    if (!wrong) replace(this.message, this.session.failed(error, () => this.load()));
  }

  showProblem(text) {
    setText(this.problem, text);
    this.search.setAttribute('aria-invalid', String(text !== ''));
  }

  follow(after) {
    this.stream?.abort();
    const {search, refused} = this.params;
    this.stream = stream({search, refused}, after, {
      message: (data) => this.arrived(data),
      state: this.session.connected,
      problem: (error) => replace(this.message, this.session.failed(error)),
    });
  }

  arrived(data) {
    this.refusedCount = data.refused;
    this.stale ||= data.revision !== this.revision;
    this.revision = data.revision;
    this.rows.arrive(data.rows ?? [], data.last, data.more);
    this.renderSoon();
  }

  // renderSoon shows what came, once before the page is painted next.
  renderSoon() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (this.rows && !this.paused) this.release();
      this.showCounts();
    });
  }

  release() {
    const added = this.rows.release();
    if (added === 0) return;
    this.unseen = this.list.atTop ? 0 : this.unseen + added;
    this.list.insert(added);
    this.announceLater(added);
  }

  announceLater(added) {
    this.unannounced += added;
    this.announcing ??= setTimeout(() => {
      this.announcing = setTimeout(() => {
        this.announcing = null;
        if (this.unannounced > 0) this.announceLater(0);
      }, announceEvery);
      this.session.announce(count(this.unannounced, 'new delivery', 'new deliveries'));
      this.unannounced = 0;
    }, refreshEvery);
  }

  pause(on) {
    this.paused = on;
    if (!on) this.renderSoon();
    this.showCounts();
    this.session.announce(on ? 'Paused' : 'Resumed');
  }

  jumpToNewest() {
    if (this.paused) this.pause(false);
    if (this.rows) this.release();
    this.list.scrollTo(0);
    this.grid.focus();
    if (this.rows?.count) this.activate(this.rows.numberAt(0));
  }

  showButtons() {
    const number = (n) => n.toLocaleString('en-US');
    const waiting = this.paused && this.rows?.waiting;
    setText(this.pauseButton, this.paused ? `Resume${waiting ? ` (${number(waiting)} new)` : ''}` : 'Pause');
    this.pauseButton.setAttribute('aria-pressed', String(this.paused));
    setText(this.newestButton, this.unseen ? `↑ ${number(this.unseen)} new` : '↑ Newest');
    this.newestButton.disabled = this.list.atTop && !waiting;
    setText(this.refusedButton, this.refusedCount ? `Refused ${number(this.refusedCount)}` : 'Refused');
    this.refusedButton.setAttribute('aria-pressed', String(Boolean(this.params.refused)));
  }

  showCounts() {
    if (!this.rows) return;
    if (this.list.atTop) this.unseen = 0;
    this.showButtons();
    this.grid.setAttribute('aria-rowcount', this.rows.complete ? this.rows.count + 1 : -1);
    setText(this.status, this.statusText());
    this.showEmpty();
  }

  statusText() {
    const {rows} = this;
    const {search, refused} = this.params;
    let all = refused ? count(this.refusedCount ?? rows.count, 'refused delivery', 'refused deliveries') : count(rows.count, 'delivery', 'deliveries');
    if (search) all = `${rows.count.toLocaleString('en-US')} found${rows.complete ? '' : `, more before ${rows.before}`}`;
    return this.selected > 1 ? `${all} · ${count(this.selected, 'row')} selected, Ctrl+C copies them` : all;
  }

  showEmpty() {
    const empty = this.rows.count === 0 && this.rows.complete;
    this.grid.classList.toggle('is-empty', empty);
    const before = this.message.firstChild;
    if (!empty && before?.className === 'empty') before.remove();
    if (!empty || before) return;
    const {search, refused} = this.params;
    const {listener} = this.session;
    const words = search ? 'No delivery matches.' : refused ? 'No delivery was refused.' : 'No deliveries yet.';
    const hint = words.endsWith('yet.') && [listener && `Send webhooks to ${listener}. `, 'Make one up with ', el('code', {}, 'waybill events send'), '.'];
    replace(this.message, el('div', {class: 'empty'}, el('p', {}, words), hint && el('p', {class: 'hint'}, hint)));
  }

  async refresh() {
    if (document.hidden || !this.rows || this.refreshing) return;
    this.refreshing = true;
    try {
      await this.rows.wake();
      if (!this.stale) return;
      this.stale = false;
      await Promise.all([this.rows.refresh(), this.detail?.refresh()]);
    } catch {
      this.stale = true; // asked again in a second
    } finally {
      this.refreshing = false;
    }
  }

  get count() { return this.rows?.count ?? 0; }
  keyAt(index) { return this.rows.numberAt(index); }

  make(number) {
    return makeRow(number, this.rows.row(number), this.session.link('deliveries', {...this.params, id: this.idOf(number)}));
  }

  mark(node, number, index) {
    const [low, high] = this.selectedRange();
    node.setAttribute('aria-rowindex', index + 2);
    node.setAttribute('aria-selected', String(number >= low && number <= high));
    node.classList.toggle('active', number === this.active);
    if (number === this.openNumber) node.setAttribute('aria-current', 'true');
    else node.removeAttribute('aria-current');
  }

  drawn(from, to, first) {
    this.firstVisible = first;
    this.rows?.want(from, to);
    const node = this.active === null ? null : this.list.node(this.active);
    if (node) this.grid.setAttribute('aria-activedescendant', node.id);
    else this.grid.removeAttribute('aria-activedescendant');
    this.renderSoon();
  }

  idOf(number) { return this.params.refused ? `refused:${number}` : String(number); }

  numberOf(id) {
    const number = parseInt(String(id ?? '').replace(/^refused:/, ''), 10);
    return Number.isNaN(number) ? null : number;
  }

  selectedRange() {
    if (this.active === null) return [Infinity, -Infinity];
    const other = this.anchor ?? this.active;
    return [Math.min(other, this.active), Math.max(other, this.active)];
  }

  get selected() {
    const [low, high] = this.selectedRange().map((number) => this.rows.indexOf(number));
    return low < 0 || high < 0 ? 0 : low - high + 1;
  }

  activate(number, extend) {
    if (!extend) this.anchor = null;
    else this.anchor ??= this.active ?? number;
    this.active = number;
    this.list.scrollTo(this.rows.indexOf(number));
    if (this.openNumber !== null && this.openNumber !== number && !extend) this.openLater();
    this.renderSoon();
  }

  activateOpen() {
    const open = this.openNumber;
    if (open !== null && open === this.active) return;
    this.anchor = null;
    this.active = this.rows?.indexOf(open) >= 0 ? open : null;
  }

  move(rows, extend) {
    if (!this.rows?.count) return;
    const index = this.active === null ? -1 : this.rows.indexOf(this.active);
    const next = index < 0 && Number.isFinite(rows) ? this.firstVisible ?? 0 : index + rows;
    this.activate(this.rows.numberAt(Math.min(Math.max(0, next), this.rows.count - 1)), extend);
  }

  openLater() {
    clearTimeout(this.opening);
    this.opening = setTimeout(() => this.go({id: this.idOf(this.active)}, {replace: true}), openPause);
  }

  clicked(event) {
    const node = event.target.closest?.('.row:not(.head)');
    if (!node || event.ctrlKey || event.metaKey || event.button !== 0) return;
    event.preventDefault();
    const selected = document.getSelection();
    if (!event.shiftKey && !selected.isCollapsed && this.grid.contains(selected.anchorNode)) return;
    const number = Number(node.id.slice('row-'.length));
    this.grid.focus({preventScroll: true});
    clearTimeout(this.opening);
    this.activate(number, event.shiftKey);
    if (!event.shiftKey) this.open(number, this.isNarrow());
  }

  copied(event) {
    const text = document.getSelection();
    let numbers = [];
    if (text.isCollapsed) {
      const first = this.rows.indexOf(this.selectedRange()[1]);
      for (let i = 0; i < Math.min(this.selected, mostCopied); i++) numbers.push(this.rows.numberAt(first + i));
    } else {
      const cells = [...this.body.querySelectorAll('.cell')].filter((cell) => text.containsNode(cell, true));
      if (cells.length < 2) return; // a part of one cell: as the browser does it
      numbers = [...new Set(cells.map((cell) => Number(cell.parentElement.id.slice('row-'.length))))];
    }
    if (numbers.length === 0) return;
    event.preventDefault();
    this.copy(numbers, event.clipboardData);
  }

  // copy copies rows, at once if they are all in memory.
  async copy(numbers, clipboard) {
    const text = () => tabSeparated([...(numbers.length > 1 ? [columns.map(([, title]) => title)] : []),
      ...numbers.map((number) => this.rows.row(number)).filter(Boolean).map(copyCells)]);
    const said = `${numbers.length === mostCopied ? 'The first ' : ''}${count(numbers.length, 'row')} copied`;
    if (numbers.every((number) => this.rows.row(number) !== undefined)) {
      clipboard.setData('text/plain', text());
      this.session.announce(said);
      return;
    }
    try {
      await this.rows.load(numbers);
      this.session.copy(text(), said);
    } catch {
      this.session.announce('Not copied: the rows did not load');
    }
  }

  isNarrow() { return getComputedStyle(this.pane).position === 'absolute'; }

  open(number, focus) {
    clearTimeout(this.opening);
    this.focusPane = focus;
    if (this.openNumber === number && focus) this.pane.focus();
    else this.go({id: this.idOf(number)}, {replace: this.openNumber !== null});
  }

  get openNumber() { return this.numberOf(this.params.id); }

  openPane(id) {
    clearTimeout(this.opening);
    this.detail?.close(); // its dialog too, which gives the focus back
    this.detail = null;
    const hadFocus = this.pane.contains(document.activeElement);
    if (id) this.activateOpen();
    this.pane.hidden = !id;
    this.root.classList.toggle('has-open', Boolean(id));
    this.list.draw();
    if (!id) {
      replace(this.pane);
      if (hadFocus) this.grid.focus({preventScroll: true});
      return;
    }
    const body = el('div', {class: 'pane-body'});
    replace(this.pane, el('header', {class: 'pane-head'}, el('h2', {}, `Delivery ${id}`),
      el('button', {type: 'button', class: 'quiet', 'aria-label': 'Close the delivery', title: 'Close (Esc)', onclick: () => this.closePane()}, '×')), body);
    this.pane.setAttribute('aria-label', `Delivery ${id}`);
    if (hadFocus || this.focusPane) this.pane.focus({preventScroll: true});
    this.focusPane = false;
    this.detail = delivery.show(body, id, this.session);
  }

  closePane() { this.go({id: undefined}, {replace: true}); }

  sendAgain() {
    if (this.active !== null && this.active !== this.openNumber) this.open(this.active, false);
    this.detail?.send();
  }

  key(event) {
    if (event.target === this.search) { // only Esc comes from there
      this.grid.focus({preventScroll: true});
      return true;
    }
    const inPane = this.pane.contains(event.target);
    switch (event.key) {
      case 'j': case 'k':
        this.move(event.key === 'j' ? 1 : -1);
        if (!inPane) this.grid.focus({preventScroll: true});
        return true;
      case 'n': this.jumpToNewest(); return true;
      case 'p': this.pause(!this.paused); return true;
      case 'r': this.sendAgain(); return true;
      case 'Escape': return this.escape();
    }
    return [this.grid, document.body, document.getElementById('main')].includes(event.target) && this.gridKey(event);
  }

  gridKey(event) {
    const page = this.list.pageRows;
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (event.key in steps) {
      this.move(steps[event.key], event.shiftKey);
      this.grid.focus({preventScroll: true});
      return true;
    }
    if (event.key === 'Enter' && this.active !== null) {
      this.open(this.active, true);
      return true;
    }
    return false;
  }

  escape() {
    if (this.openNumber !== null) {
      this.closePane();
      return true;
    }
    if (this.anchor === null) return false;
    this.activate(this.active);
    return true;
  }

  close() {
    this.loading?.abort();
    this.stream?.abort();
    this.rows?.close();
    this.detail?.close();
    this.list.close();
    clearInterval(this.timer);
    cancelAnimationFrame(this.frame);
    for (const timer of [this.typing, this.opening, this.announcing]) clearTimeout(timer);
  }
}
