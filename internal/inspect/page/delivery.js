// delivery.js shows one delivery.

import {el, replace, badge, time, bytes, count, visible, copyTable} from './dom.js';
import {get, download} from './api.js';
import {Tree} from './jsontree.js';
import {command, keepPlace} from './command.js';
import {openSend, openCurl} from './send.js';
import {stateWords} from './deliveryrow.js';

const textChunk = 64 * 1024; // characters of a body that are shown at once

export function show(root, id, session) {
  const ending = new AbortController();
  let delivery;
  let wanted = false; // it is sent once it is there

  // refresh shows what the store has of the delivery now.
  async function refresh() {
    const before = delivery;
    try {
      delivery = await get(path(id), {}, ending.signal);
    } catch (error) {
      if (ending.signal.aborted) return;
      if (before && error.status !== 404) throw error;
      replace(root, session.failed(error, error.status === 404 ? null : refresh));
      return;
    }
    const differs = (more) => JSON.stringify({...before, ...more}) !== JSON.stringify({...delivery, ...more});
    if (differs({forwarding: []})) keepPlace(root, () => replace(root, page(delivery, session, send, ending.signal)));
    else if (differs()) keepPlace(root, () => root.querySelector('.targets').replaceWith(forwardings(delivery)));
    if (wanted) send();
  }

  function send(edit) {
    wanted = !delivery;
    if (delivery) openSend(delivery, session, {edit});
  }

  replace(root, el('p', {class: 'message', role: 'status'}, 'Loading…'));
  refresh();
  return {
    refresh,
    send: () => send(),
    close() {
      ending.abort();
      document.querySelector('dialog[open]')?.close();
    },
  };
}

export const path = (id) => `/deliveries/${encodeURIComponent(id)}`;

let sections = 0; // numbers the headings

function section(title, ...content) {
  const id = `delivery-section-${++sections}`;
  return el('section', {class: 'part', 'aria-labelledby': id}, el('h3', {id}, title), content);
}

const facts = (pairs) => el('dl', {class: 'facts'}, pairs.filter(([, value]) => value).map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));

export const hint = (...text) => el('p', {class: 'hint'}, text);
export const pre = (text, kind, key) => el('pre', {class: kind, tabindex: '0', 'data-key': key}, text);
const mono = (text) => el('span', {class: 'mono'}, visible(text));
const rowHead = (text) => el('th', {scope: 'row', class: 'mono'}, visible(text));
const cell = (text) => el('td', {class: 'mono'}, visible(text));
const table = (titles, rows) => el('div', {class: 'scroll-x'}, copyTable(el('table', {class: 'list'},
  el('thead', {}, el('tr', {}, titles.map((title) => el('th', {scope: 'col'}, title)))), el('tbody', {}, rows))));

export const button = (text, onclick, more) => el('button', {type: 'button', onclick, ...more}, text);

/** downloadButton saves the body of a delivery. */
export function downloadButton(text, d, session) {
  const node = el('span', {}, button(text, () => download(`${path(d.id)}/body`).catch((error) => node.append(session.failed(error)))));
  return node;
}

function page(d, session, send, signal) {
  const canSend = !session.readOnly && d.body;
  return el('div', {class: 'delivery'},
    summary(d),
    el('div', {class: 'bar'},
      canSend && button('Send again…', () => send(), {class: 'primary', 'aria-keyshortcuts': 'r'}),
      canSend && d.body.text !== undefined && !d.body.cut && button('Edit and send…', () => send(true)),
      d.body && button('Copy as curl…', () => openCurl(d, session)),
      d.body && downloadButton('Download body', d, session)),
    eventPart(d, session, signal),
    d.refused ? null : forwardings(d),
    bodyPart(d, session),
    d.signature && signaturePart(d, session, signal),
    d.headers.length > 0 && section('Headers', table(['Name', 'Value'], d.headers.map((h) => el('tr', {}, rowHead(h.name), cell(h.value))))),
    section('On the command line', ['show', 'raw', 'explain', 'readmit'].map((name) => d.commands[name] && command(session, d.commands[name]))));
}

function summary(d) {
  const verified = d.verified === 'yes' && !d.bodyAuthenticated ? 'yes, body not authenticated' : d.verified === 'no' ? `no: ${d.reason}` : d.verified;
  const by = [d.scheme && `scheme ${d.scheme}`, d.secret && `secret ${d.secret}`].filter(Boolean).join(', ');
  return facts([
    ['Received', [time(d.receivedAt), d.from && ` from ${visible(d.from)}`]],
    ['Request', mono(`${d.method} ${d.path}${d.query ? `?${d.query}` : ''}`)],
    ['Verified', [badge(verified, {yes: 'good', no: 'bad'}[d.verified] ?? 'caution'), by && el('span', {class: 'faint'}, ` ${visible(by)}`)]],
    ['Size', d.pruned ? 'its bytes were pruned' : bytes(d.bytes)],
    ...[d.refused && ['Refused', 'answered 401: it changed nothing'], d.synthetic && ['Made up', 'by waybill, as it says'], d.single && ['Form', 'one object instead of an array'], d.anomaly && ['Anomaly', d.anomaly]]
      .filter(Boolean).map(([name, text]) => [name, badge(text, 'caution')]),
  ]);
}

const words = {...stateWords, event: 'new', anomaly: 'no event', skipped: 'not done'};
const tones = {event: 'good', conflict: 'bad', anomaly: 'caution', waiting: 'caution', sending: 'caution', sent: 'good', dead: 'bad', ok: 'good', failed: 'bad'};
const mark = (word) => badge(words[word] ?? word, tones[word] ?? 'faint');

function eventPart(d, session, signal) {
  if (d.refused) return null;
  const list = el('div', {}, d.events.map((e) => eventCard(d, e, session)));
  let {next} = d;
  const more = button('Show more events', async () => {
    try {
      const answer = await get(`${path(d.id)}/events`, {from: next}, signal);
      list.append(...answer.events.map((e) => eventCard(d, e, session)));
      next = answer.next;
    } catch (error) {
      if (!signal.aborted) list.append(session.failed(error));
    }
    more.hidden = next === null;
  }, {hidden: next === null});
  return section(count(d.eventCount, 'event'), list, more);
}

const toDelivery = (id, session) => el('a', {class: 'id', href: session.link('deliveries', {id: id.split('.')[0]})}, visible(id));

function eventCard(d, e, session) {
  return el('article', {class: 'event-card', 'aria-label': `Event ${visible(e.id)}`},
    el('p', {class: 'lead'}, d.eventCount > 1 && el('span', {class: 'faint'}, `${e.place}. `), mark(e.type), ' ', el('strong', {}, visible(e.event || '(no kind)')), ' ',
      e.trackingNumber && [el('a', {class: 'id', href: session.link('tracking', {trackingNumber: e.trackingNumber})}, visible(e.trackingNumber)), ' '], e.statusText && badge(e.statusText, e.tone)),
    facts([
      ['Event ID', e.eventId && mono(e.eventId)],
      ['Event time', visible(e.eventTime)],
      ['Latest event', visible(e.latestEvent)],
      ['Anomaly', e.anomaly && badge(e.anomaly, 'caution')],
      ['Changed', visible(e.effect)],
      ['What counts', e.current && ['event ', toDelivery(e.current, session)]],
      ['Same event ID', e.repeats.length > 0 && e.repeats.map((r, i) => [i > 0 && ', ', toDelivery(r.id, session), ` (${r.type})`])],
    ]));
}

function forwardings(d) {
  const rows = d.forwarding.map((f) => {
    const waits = f.heldBy ? `held behind ${f.heldBy}: same number ${f.heldByNumber}` : f.noListener ? 'no running listener forwards to it' : '';
    const key = `${f.filter} ${f.target}`;
    const ended = f.sentAt ?? f.givenUpAt;
    return [el('tr', {}, rowHead(f.filter ? `${f.filter}=>${f.target}` : f.target), el('td', {}, mark(f.state), waits && el('div', {class: 'faint'}, visible(waits))),
      cell(f.attempts || ''), el('td', {}, visible(f.problem || f.status || '')), el('td', {}, ended ? time(ended, true) : f.nextAttemptAt ? ['next ', time(f.nextAttemptAt, true)] : '')),
    f.history?.length > 0 && el('tr', {}, el('td', {colspan: '5', class: 'faint'}, f.history.map((a, i) => [
      i > 0 && '; ', `${a.attempt}: ${a.status || 'no answer'} in ${Math.round(a.elapsedSeconds * 1000)} ms, `, time(a.at, true)]))),
    f.reply && el('tr', {}, el('td', {colspan: '5'}, el('details', {}, el('summary', {'data-key': key}, 'Start of the answer'), pre(f.reply, null, `reply ${key}`))))];
  });
  return el('div', {class: 'targets'}, rows.length > 0 && section('Targets', table(['Target', 'State', 'Attempts', 'Last answer', 'When'], rows)));
}

function bodyPart(d, session) {
  if (!d.body) return section('Body', hint('Its bytes were pruned; its events are what is kept.'));
  const {body} = d;
  if (body.bytes === 0) return section('Body', hint('It is empty.'));
  const notes = [
    body.masked && 'Secrets show as ***; the download has the bytes as they came.',
    body.cut && `This is the start of ${bytes(body.bytes)}; the download has all.`,
    body.hex && 'It is not UTF-8, and shown in hex.',
  ].filter(Boolean).map((text) => hint(text));
  if (body.hex) return section('Body', notes, pre(dump(body.hex), 'dump'));
  const place = el('div', {});
  const views = {Tree: () => new Tree(body.text, 'Body', session).node, Text: () => textView(body.text)};
  const buttons = Object.keys(views).map((name) => button(name, () => choose(name)));
  const choose = (name) => {
    for (const b of buttons) b.setAttribute('aria-pressed', String(b.textContent === name));
    replace(place, views[name]());
  };
  choose(body.json ? 'Tree' : 'Text');
  return section('Body', notes, body.json && el('div', {class: 'bar', role: 'group', 'aria-label': 'Form of the body'}, buttons), place);
}

function textView(text) {
  const node = pre('');
  let shown = 0;
  const more = button('Show more', () => add());
  const add = () => {
    node.append(el('span', {}, text.slice(shown, shown + textChunk)));
    shown += textChunk;
    more.hidden = shown >= text.length;
  };
  add();
  return [node, more];
}

function dump(hex) {
  const lines = [];
  for (let at = 0; at < hex.length; at += 32) {
    const pairs = hex.slice(at, at + 32).match(/../g);
    const ascii = String.fromCharCode(...pairs.map((p) => parseInt(p, 16))).replace(/[^ -~]/g, '.');
    lines.push(`${(at / 2).toString(16).padStart(6, '0')}  ${pairs.join(' ').padEnd(47)}  ${ascii}`);
  }
  return lines.join('\n');
}

function signaturePart(d, session, signal) {
  const s = d.signature;
  if (s.problem) return section('Signature', el('p', {}, visible(s.problem)), s.hint && hint(visible(s.hint)), d.commands.learn && command(session, d.commands.learn));
  const steps = el('ol', {class: 'steps'}, s.steps.map((step) => el('li', {},
    el('p', {}, el('strong', {}, step.title), ' ', step.result && mark(step.result), ' ', visible(step.text)),
    step.values && (step.step === 'signed' ? signedBytes(step.values) : facts(step.values.map((v) => [visible(v.name), el('span', {class: 'mono'}, content(v))]))))));
  return section('Signature', hint('Judged with the scheme and secrets that are set now, by the time of its receipt.'), steps, !s.verified && diagnosis(d, session, signal));
}

const content = (v) => [visible(v.text ?? v.hex), v.cut && `… ${bytes(v.bytes)} in all`, v.masked && ' (masked)'];

const signedBytes = (values) => pre(values.map((v) => el('span', {class: v.name && 'slot', title: v.name || 'text of the scheme'}, v.text ?? v.hex, v.cut && '…')), 'signed');

function diagnosis(d, session, signal) {
  const node = el('div', {class: 'diagnosis', role: 'status'}, hint('Searching for the cause…'));
  get(`${path(d.id)}/diagnosis`, {}, signal).then((x) => {
    replace(node, el('p', {}, el('strong', {}, 'Why: '), visible(x.text)), x.hint && hint(visible(x.hint)),
      x.fits && [el('p', {}, 'It verifies in this scheme:'), pre(x.fitsYAML)], x.learn && command(session, x.learn));
  }, (error) => signal.aborted || replace(node, session.failed(error)));
  return node;
}
