// deliveryrow.js shows one delivery as a row of the list, and says in words what
// its row has. The words are those of the command line.

import {el, badge, time, localTime, visible, cellText} from './dom.js';

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

/** verifiedWords says whether a delivery verified, or why not, and its tone. */
export function verifiedWords(row) {
  if (row.verified === 'yes') {
    return row.bodyAuthenticated === false ? ['yes, body not authenticated', 'caution'] : ['yes', 'good'];
  }
  if (row.verified === 'no') return [`no: ${row.reason || 'not verified'}`, 'bad'];
  return [row.verified || 'unknown', 'faint'];
}

/** stateWords are the words of states of a forwarding that have others. */
export const stateWords = {unread: 'not queued yet', notQueued: 'not queued', sending: 'being sent', dead: 'given up'};

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

function texts(row) {
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

export function copyCells(row) {
  const text = texts(row);
  return columns.map(([name]) => cellText(text[name], name === 'trackings'));
}

const cell = (name, title, ...children) => el('div', {class: `cell ${name}`, role: 'gridcell', title}, children);

// firstOf shows the first of several values, and how many more there are; … where some are not known.
function firstOf(values, partial) {
  const more = (values.length > 1 ? `+${values.length - 1}` : '') + (partial ? '…' : '');
  return [el('span', {class: 'cut'}, visible(values[0] ?? '')), more && el('span', {class: 'more'}, more)];
}

const isPartial = (row) => (row.eventCount ?? 0) > (row.events ?? []).length;

function marks(row) {
  const types = (row.events ?? []).map((e) => e.type);
  return [
    row.synthetic && badge('made up', 'faint', 'Sent by `waybill events send`'),
    isPartial(row) && badge(`${row.eventCount} events`, 'faint'),
    (row.anomaly || types.includes('anomaly')) && badge('anomaly', 'caution', row.anomaly || row.events.find((e) => e.anomaly)?.anomaly),
    types.includes('conflict') && badge('conflict', 'bad'),
    types.includes('duplicate') && badge('duplicate', 'faint'),
  ];
}

function kindsCell(row, text) {
  const kinds = distinct((row.events ?? []).map((e) => e.event));
  const empty = (row.eventCount ?? 0) === 0 && kinds.length === 0;
  return cell('kinds', text.kinds, empty ? el('span', {class: 'faint'}, row.method && row.path ? visible(`${row.method} ${row.path}`) : 'no event') : firstOf(kinds), marks(row));
}

function statusCell(row, text) {
  const first = (row.events ?? []).find((e) => e.statusText);
  return cell('status', text.status, first && badge(first.statusText, first.tone));
}

function forwardedCell(row, {forwarded: title}) {
  const shown = (row.forwarding ?? []).filter((f) => f.state !== 'notQueued');
  if (shown.length < 3) return cell('forwarded', title, shown.map((f) => badge(...forwardingWords(f), f.target)));
  // More do not fit: how many targets are in which state; the title has each.
  const counts = Map.groupBy(shown, (f) => f.state);
  return cell('forwarded', title, [...counts.values()].map((fs) => badge(`${fs.length} ${fs[0].state}`, forwardingWords(fs[0])[1])));
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
    cell('trackings', text.trackings, firstOf(distinct((row.events ?? []).map((e) => e.trackingNumber)), isPartial(row))),
    statusCell(row, text),
    cell('verified', verified, badge(verified, tone)),
    forwardedCell(row, text),
    cell('latest', text.latest, el('span', {class: 'cut'}, visible(text.latest))));
  return node;
}
