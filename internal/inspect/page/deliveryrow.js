// deliveryrow.js shows one delivery as a row of the list, and says in words what
// its row has. The words are those of the command line.

import {el, badge, time, localTime, visible, cellText} from './dom.js';

/** columns of the list: class, title. */
export const columns = [
  ['number', 'ID'],
  ['received', 'Received'],
  ['kinds', 'Event'],
  ['trackings', 'Tracking number'],
  ['status', 'Status'],
  ['verified', 'Verified'],
  ['forwarded', 'Forwarded'],
  ['latest', 'Latest event'],
];

const unfinishedStates = new Set(['unread', 'waiting', 'sending']);

/** isUnfinished says whether a target has not got a delivery yet, and may get it. */
export const isUnfinished = (row) => (row.forwarding ?? []).some((f) => unfinishedStates.has(f.state));

/** verifiedWords says whether a delivery verified, or why not, and its tone. */
export function verifiedWords(row) {
  if (row.verified === 'yes') {
    return row.bodyAuthenticated === false ? ['yes, body not authenticated', 'caution'] : ['yes', 'good'];
  }
  if (row.verified === 'no') return [`no: ${row.reason || 'not verified'}`, 'bad'];
  return [row.verified || 'unknown', 'faint'];
}

const stateWords = {unread: 'not queued yet', notQueued: 'not queued', waiting: 'waiting', sending: 'being sent', sent: 'sent', dead: 'given up'};

/** forwardingWords says in few words what became of a delivery at a target, and its tone. */
export function forwardingWords(f) {
  const status = f.status ? String(f.status) : '';
  switch (f.state) {
    case 'sent': return [status || 'sent', 'good'];
    case 'dead': return [`given up${status && `, ${status}`}`, 'bad'];
    case 'waiting':
      if (f.attempts > 0) return [`retry ${f.attempts}${status && `, ${status}`}`, 'caution'];
      return [f.heldBy ? `held behind ${f.heldBy}` : 'waiting', 'faint'];
  }
  return [stateWords[f.state] ?? f.state, 'faint'];
}

const distinct = (values) => [...new Set(values.filter((value) => value !== undefined && value !== null && value !== ''))];

/** texts returns what stands in a row, by column, as plain texts. */
export function texts(row) {
  const events = row.events ?? [];
  return {
    number: row.id,
    received: localTime(row.receivedAt),
    kinds: distinct(events.map((e) => e.event)).join(', '),
    trackings: distinct(events.map((e) => e.trackingNumber)).join(', '),
    status: distinct(events.map((e) => e.statusText)).join(', '),
    verified: verifiedWords(row)[0],
    forwarded: (row.forwarding ?? []).map((f) => `${f.target}: ${forwardingWords(f)[0]}`).join(', '),
    latest: distinct(events.map((e) => e.latestEvent)).join(', '),
  };
}

/** copyCells returns a row's cells for a spreadsheet. */
export function copyCells(row) {
  const text = texts(row);
  return columns.map(([name]) => cellText(text[name], name === 'trackings'));
}

const cell = (name, title, ...children) => el('div', {class: `cell ${name}`, role: 'gridcell', title}, children);

// firstOf shows the first of several values, and how many more there are.
function firstOf(values, hidden = 0) {
  const more = values.length - 1 + hidden;
  return [el('span', {class: 'cut'}, visible(values[0] ?? '')), more > 0 && el('span', {class: 'more'}, `+${more}`)];
}

function marks(row) {
  return [
    row.synthetic && badge('made up', 'faint', 'Sent by `waybill events send`'),
    row.anomaly && badge('anomaly', 'caution', row.anomaly),
    (row.events ?? []).some((e) => e.type === 'conflict') && badge('conflict', 'bad'),
    (row.events ?? []).some((e) => e.type === 'duplicate') && badge('duplicate', 'faint'),
  ];
}

function kindsCell(row, text) {
  const kinds = distinct((row.events ?? []).map((e) => e.event));
  const unseen = Math.max(0, (row.eventCount ?? 0) - (row.events ?? []).length);
  const empty = (row.eventCount ?? 0) === 0 && kinds.length === 0;
  return cell('kinds', text.kinds, empty ? el('span', {class: 'faint'}, row.method && row.path ? visible(`${row.method} ${row.path}`) : 'no event') : firstOf(kinds, unseen), marks(row));
}

function statusCell(row, text) {
  const first = (row.events ?? []).find((e) => e.statusText);
  return cell('status', text.status, first && badge(first.statusText, first.tone));
}

function forwardedCell(row) {
  const shown = (row.forwarding ?? []).filter((f) => f.state !== 'notQueued');
  const title = (row.forwarding ?? []).map((f) => `${f.target}: ${forwardingWords(f)[0]}`).join('; ');
  return cell('forwarded', title, shown.map((f) => {
    const [words, tone] = forwardingWords(f);
    return badge(words, tone, f.target);
  }));
}

/** makeRow returns the element of a row. row is undefined while it is loaded, null if there is none. */
export function makeRow(number, row, href) {
  const node = el('div', {role: 'row', id: `row-${number}`, class: 'row'});
  if (!row) {
    node.classList.add('missing');
    node.append(cell('number', null, String(number)), cell('received', null, row === null ? 'not kept' : '…'));
    return node;
  }
  const text = texts(row);
  const [verified, tone] = verifiedWords(row);
  node.append(
    cell('number', null, el('a', {href, tabindex: '-1', draggable: 'false'}, visible(row.id))),
    cell('received', null, time(row.receivedAt, true)),
    kindsCell(row, text),
    cell('trackings', text.trackings, firstOf(distinct((row.events ?? []).map((e) => e.trackingNumber)))),
    statusCell(row, text),
    cell('verified', verified, badge(verified, tone)),
    forwardedCell(row),
    cell('latest', text.latest, el('span', {class: 'cut'}, visible(text.latest))));
  return node;
}
