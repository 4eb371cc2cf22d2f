// jsontree.js shows JSON as a tree, as it was sent: with the literals of numbers, the
// order of members and repeated names. A value is read when its parent is opened.

import {el, replace, visible} from './dom.js';

const shownChildren = 100; // of a value at a time
const shownString = 2000; // characters of a string or number
const countedChildren = 1000; // of a value that is closed
const openedValues = 150; // at first
const openedChildren = 20; // of a value that is open at first
const openedText = 2e6; // characters read to open them
const maxLevels = 100; // what is deeper shows as text

const space = /[ \t\r\n]*/y;
const scalar = /[^,\]}\s]*/y;

function match(pattern, text, at) {
  if (at >= text.length) return text.length;
  pattern.lastIndex = at;
  pattern.exec(text);
  return pattern.lastIndex;
}

function stringEnd(text, at) {
  for (let end = at + 1; ; end++) {
    end = text.indexOf('"', end);
    if (end < 0) return text.length;
    let slashes = end - 1;
    while (text[slashes] === '\\') slashes--;
    if ((end - slashes) % 2 === 1) return end + 1;
  }
}

const structure = /["[\]{}]/g;

// valueEnd returns where a value ends, at most the text's end.
function valueEnd(text, at) {
  if (text[at] === '"') return stringEnd(text, at);
  if (text[at] !== '{' && text[at] !== '[') return match(scalar, text, at);
  for (let depth = 0, end = at; ; ) {
    structure.lastIndex = end;
    const found = structure.exec(text);
    if (!found) return text.length;
    if (found[0] === '"') {
      end = stringEnd(text, found.index);
      continue;
    }
    end = found.index + 1;
    depth += found[0] === '{' || found[0] === '[' ? 1 : -1;
    if (depth === 0) return end;
  }
}

function decoded(literal) {
  try { return JSON.parse(literal); } catch { return literal; }
}

export function whole(text) {
  const start = match(space, text, 0);
  return {text, start, end: valueEnd(text, start), pointer: '', level: 1};
}

export const raw = (value) => value.text.slice(value.start, value.end);

/** children yields the members of an object, or the elements of an array. */
export function* children(value) {
  const {text, end} = value;
  const object = text[value.start] === '{';
  let at = match(space, text, value.start + 1);
  for (let index = 0; at < end && text[at] !== '}' && text[at] !== ']'; index++) {
    let name = String(index);
    if (object) {
      const nameEnd = stringEnd(text, at);
      name = decoded(text.slice(at, nameEnd));
      at = match(space, text, match(space, text, nameEnd) + 1); // over the colon
      if (at >= end) return; // the text is cut here
    }
    const child = {
      text, start: at, end: valueEnd(text, at), name, object, index, level: value.level + 1,
      pointer: `${value.pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`,
    };
    yield child;
    at = match(space, text, child.end);
    if (text[at] !== ',' && child.end === child.start) return; // not JSON
    if (text[at] === ',') at = match(space, text, at + 1);
  }
}

function countChildren(value) {
  let n = 0;
  for (const child of children(value)) {
    if (child.end > child.start) n++;
    if (n === countedChildren) break;
  }
  return n;
}

function shown(value) {
  const rest = value.end - value.start - shownString;
  return rest > 0 ? `${value.text.slice(value.start, value.start + shownString)}… ${rest} more` : raw(value);
}

const kinds = {'"': 'string', t: 'word', f: 'word', n: 'word'};

/** Tree shows a JSON text in node. session copies. */
export class Tree {
  items = 0;
  values = new WeakMap(); // of items, whose first child is the line with the role
  current = null; // the item that the keys act on

  constructor(text, label, session) {
    this.session = session;
    this.list = el('ul', {class: 'jsontree', role: 'tree', 'aria-label': label});
    this.path = el('code', {class: 'faint'});
    const button = (name, key) => el('button', {type: 'button', class: 'quiet', 'aria-keyshortcuts': key, onclick: () => this.copy(key)}, name);
    this.node = el('div', {}, el('div', {class: 'tree-bar'}, button('Copy value', 'c'), button('Copy pointer', 'p'), this.path), el('div', {class: 'scroll-x'}, this.list));
    const root = this.item(whole(text));
    this.list.append(root);
    this.list.addEventListener('click', (event) => this.clicked(event));
    this.list.addEventListener('keydown', (event) => { if (this.key(event)) event.preventDefault(); });
    this.select(root, false);
    let read = 0;
    for (let queue = [root]; queue.length > 0 && this.items < openedValues && read < openedText;) {
      const item = queue.shift();
      const value = this.values.get(item);
      if (!value?.count || value.count > openedChildren && item !== root) continue;
      read += value.end - value.start;
      this.open(item);
      queue.push(...item.lastChild.children);
    }
  }

  item(value) {
    const first = value.text[value.start];
    const name = value.name === undefined ? '' : visible(value.name);
    let text = shown(value);
    let kind = kinds[first] ?? '';
    let words = text;
    let expanded;
    if ((first === '{' || first === '[') && value.level < maxLevels) {
      const n = value.count = countChildren(value);
      const amount = n === countedChildren ? `${n}+` : n || '';
      text = first === '{' ? `{${amount}}` : `[${amount}]`;
      words = `${amount || 'no'} ${first === '{' ? 'member' : 'element'}${n === 1 ? '' : 's'}`;
      kind = 'faint';
      if (n > 0) expanded = 'false';
    }
    const item = this.row(value.level, {'aria-label': name === '' ? words : `${name}: ${words}`, 'aria-expanded': expanded},
      value.name !== undefined && [el('span', {class: value.object ? 'name' : 'faint'}, name), ': '], el('span', {class: kind}, visible(text)));
    this.items++;
    this.values.set(item, value);
    return item;
  }

  // row returns an item. Its line alone has the role: the name of a line is not that of
  // what is below it.
  row(level, attributes, ...content) {
    return el('li', {role: 'none'}, el('span', {class: 'line', role: 'treeitem', tabindex: '-1', 'aria-level': level, 'aria-selected': 'false', ...attributes}, content));
  }

  open(item) {
    item.firstChild.setAttribute('aria-expanded', 'true');
    if (item.lastChild.role === 'group') {
      item.lastChild.hidden = false;
      return;
    }
    item.append(el('ul', {role: 'group'}));
    this.add(item, 0);
  }

  add(item, from) {
    const value = this.values.get(item);
    for (const child of children(value)) {
      if (child.index < from) continue;
      if (child.index < from + shownChildren) {
        item.lastChild.append(this.item(child));
        continue;
      }
      const rest = this.row(child.level, {}, `… more, from ${child.index} on`);
      rest.act = () => {
        rest.remove();
        const last = item.lastChild.lastChild;
        this.add(item, child.index);
        this.select(last.nextSibling);
      };
      item.lastChild.append(rest);
      return;
    }
  }

  toggle(item) {
    const expanded = item.firstChild.getAttribute('aria-expanded');
    if (item.act) item.act();
    else if (expanded === 'false') this.open(item);
    else if (expanded) {
      item.firstChild.setAttribute('aria-expanded', 'false');
      item.lastChild.hidden = true;
    }
  }

  select(item, focus = true) {
    if (!item) return;
    for (const [node, on] of [[this.current, false], [item, true]]) {
      node?.firstChild.setAttribute('tabindex', on ? '0' : '-1');
      node?.firstChild.setAttribute('aria-selected', String(on));
    }
    this.current = item;
    replace(this.path, visible(this.values.get(item)?.pointer));
    if (focus) item.firstChild.focus();
  }

  clicked(event) {
    const item = event.target.closest('[role=treeitem]')?.parentElement;
    if (!item || String(document.getSelection())) return;
    this.select(item);
    this.toggle(item);
  }

  move(by) {
    const all = [...this.list.querySelectorAll('li')].filter((item) => !item.parentElement.closest('[hidden]'));
    this.select(all[Math.max(0, Math.min(all.length - 1, all.indexOf(this.current) + by))]);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const item = this.current;
    const isOpen = item.firstChild.getAttribute('aria-expanded') === 'true';
    switch (event.key) {
      case 'ArrowDown': this.move(1); break;
      case 'ArrowUp': this.move(-1); break;
      case 'Home': this.move(-Infinity); break;
      case 'End': this.move(Infinity); break;
      case 'Enter': case ' ': this.toggle(item); break;
      case 'ArrowRight': if (isOpen) this.select(item.lastChild.firstChild); else this.toggle(item); break;
      case 'ArrowLeft': if (isOpen) this.toggle(item); else this.select(item.parentElement.closest('li')); break;
      case 'c': case 'p': this.copy(event.key); break;
      default: return false;
    }
    return true;
  }

  copy(what) {
    const value = this.values.get(this.current);
    if (!value) return;
    if (what === 'p') this.session.copy(value.pointer, 'Pointer copied');
    else this.session.copy(value.text[value.start] === '"' ? decoded(raw(value)) : raw(value), 'Value copied');
  }
}
