// dom.js makes every element of the page. Text from outside enters only here,
// as text nodes, with what controls, reorders or hides text made visible.

const svgNamespace = 'http://www.w3.org/2000/svg';
const svgTags = new Set(['svg', 'line', 'circle', 'text']);

// The same characters as internal/term.Visible, but newline and tab. U+FE0F selects emoji forms and stays.
const hidden = /(?![\n\t\ufe0f])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\p{Noncharacter_Code_Point}]/gu;

/** visibleText returns text whose hidden characters are escapes such as \u{202e}; newline and tab stay. */
export const visibleText = (text) => String(text ?? '').replace(hidden, (char) => `\\u{${char.codePointAt(0).toString(16)}}`);

/** visible is visibleText for one line. */
export const visible = (text) => visibleText(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');

// Attributes that run code, load something or bypass the CSP's style rule.
const forbidden = /^(on|style$|src|action$|formaction$|xlink)/i;

function setAttribute(node, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (typeof value === 'function' && name.startsWith('on')) {
    node.addEventListener(name.slice(2).toLowerCase(), value);
    return;
  }
  if (forbidden.test(name)) throw new Error(`attribute ${name} is not allowed`);
  if (name === 'href' && !value.startsWith('#')) throw new Error('a link leaves the page');
  if (name === 'title' || name.startsWith('aria-')) node.setAttribute(name, visible(value));
  else node.setAttribute(name, value === true ? '' : value);
}

/**
 * el returns an element. Attributes without a value or false are left out, true is
 * an empty one, on… takes a function. Children are nodes, texts, or arrays of them.
 */
export function el(tag, attributes, ...children) {
  const node = svgTags.has(tag) ? document.createElementNS(svgNamespace, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) setAttribute(node, name, value);
  append(node, children);
  return node;
}

function append(node, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(visibleText(child)));
  }
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren();
  return append(node, ...children);
}

/** setText sets the text of node, if it differs: an unchanged live region stays silent. */
export function setText(node, text) {
  const shown = visibleText(text);
  if (node.textContent !== shown) node.textContent = shown;
}

/** badge returns a short text in a tone: good, bad, caution, faint or empty. */
export function badge(text, tone, title) {
  return el('span', {class: tone ? `badge tone-${tone}` : 'badge', title}, visible(text));
}

const pad = (number, width = 2) => String(number).padStart(width, '0');

function offset(date) {
  const minutes = -date.getTimezoneOffset();
  const sign = minutes < 0 ? '-' : '+';
  return `${sign}${pad(Math.floor(Math.abs(minutes) / 60))}:${pad(Math.abs(minutes) % 60)}`;
}

const localDate = (date) => `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
export const localClock = (date) => `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;

/** localTime returns a time as the command line shows it: 2026-11-22 20:15:03 +01:00. */
export function localTime(value) {
  const date = new Date(value ?? NaN);
  if (Number.isNaN(date.getTime())) return visible(value ?? '');
  return `${localDate(date)} ${localClock(date)} ${offset(date)}`;
}

/** time returns a <time>; short leaves out the date of today, and the offset. */
export function time(value, short) {
  const date = new Date(value ?? NaN);
  if (Number.isNaN(date.getTime())) return el('span', {class: 'faint'}, value || '–');
  const today = localDate(date) === localDate(new Date());
  const text = short ? `${today ? '' : localDate(date).slice(5) + ' '}${localClock(date)}` : localTime(value);
  return el('time', {datetime: date.toISOString(), title: localTime(value)}, text);
}

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`;
}

/** bytes returns a size in the units of the command line. */
export function bytes(size) {
  if (!(size >= 1000)) return `${size ?? 0} B`;
  const units = ['kB', 'MB', 'GB'];
  let unit = -1;
  do { size /= 1000; unit++; } while (size >= 999.5 && unit < units.length - 1);
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** dialog shows a modal dialog and returns it. The focus returns to where it was. */
export function dialog(title, ...children) {
  const before = document.activeElement;
  const heading = el('h2', {id: 'dialog-title'}, title);
  const node = el('dialog', {'aria-labelledby': 'dialog-title'},
    el('header', {class: 'dialog-head'}, heading,
      el('button', {class: 'quiet', type: 'button', 'aria-label': 'Close', onclick: () => node.close()}, '×')),
    el('div', {class: 'dialog-body'}, children));
  node.addEventListener('close', () => {
    node.remove();
    if (before?.isConnected) before.focus();
  });
  document.body.append(node);
  node.showModal();
  return node;
}

// The rules of internal/render for CSV, without the words of dates in all languages.
const formula = /^[=+\-@\uff1d\uff0b\uff0d\uff20]/;
const plainNumber = /^[-+]?\d+(\.\d+)?$/;
const reinterpreted = /^(0\d+|\d{12,}|\d+(\.\d+)?e[-+]?\d+|[\d\s.,:\/-]*[.,:\/-][\d\s.,:\/-]*|[a-z]{3}[- ]?\d{1,4})$/i;

/**
 * cellText returns a cell of a copied table: one line without tabs that a
 * spreadsheet does not run. An identifier that it would change becomes ="…".
 */
export function cellText(text, identifier) {
  const line = visible(String(text ?? '').replace(/\s+/g, ' ').trim());
  if (identifier && (reinterpreted.test(line) || formula.test(line))) return `="${line.replaceAll('"', '""')}"`;
  return formula.test(line) && line.length > 1 && !plainNumber.test(line) ? `'${line}` : line;
}

export const tabSeparated = (rows) => rows.map((cells) => `${cells.join('\t')}\n`).join('');

/**
 * copyTable has rows of a <table> copied with tabs where more than one cell is
 * selected. Class "id" marks identifiers.
 */
export function copyTable(table) {
  table.addEventListener('copy', (event) => {
    const selection = document.getSelection();
    const cells = [...table.querySelectorAll('th,td')].filter((cell) => selection.containsNode(cell, true));
    if (cells.length < 2) return;
    const rows = [...new Set(cells.map((cell) => cell.parentElement))];
    const text = (cell) => cellText(cell.innerText, cell.classList.contains('id'));
    event.clipboardData.setData('text/plain', tabSeparated(rows.map((row) => [...row.cells].map(text))));
    event.preventDefault();
  });
  return table;
}

const savingTime = 60000; // ms for the browser to begin

/** save has the browser save bytes as a file. */
export function save(blob, name) {
  const link = el('a', {download: name});
  link.href = URL.createObjectURL(blob);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), savingTime);
}
