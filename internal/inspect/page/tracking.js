// tracking.js shows what the store knows of one tracking, or of the parcels of an
// order: its timeline drawn, and its events.

import {el, replace, setText, badge, time, visible, copyTable, localClock, count} from './dom.js';
import {get} from './api.js';
import {command, keepPlace} from './command.js';

export function show(root, params, session) {
  return new Tracking(root, params, session);
}

const shortestPause = 3000; // ms between two reads
const longestPause = 60000;
const share = 20; // a pause is so many times as long as the read before it

const steps = [3600, 6 * 3600, 86400, 3 * 86400, 7 * 86400, 14 * 86400]; // s from which on a gap is drawn longer

class Tracking {
  title = 'Tracking';
  keys = [['j', 'next event'], ['k', 'previous event'], ['Enter', 'open the event\'s delivery'], ['o', 'oldest or newest first'], ['c', 'copy the command'], ['u', 'to the deliveries']];

  constructor(root, params, session) {
    Object.assign(this, {root, session});
    this.main = el('div', {});
    this.foot = el('div', {class: 'status-line'});
    root.append(this.main, this.foot);
    this.ending = new AbortController();
    document.addEventListener('visibilitychange', () => { if (!document.hidden && this.asking) this.read(); }, {signal: this.ending.signal});
    this.update(params);
  }

  update(params) {
    const other = ['referId', 'trackingNumber', 'id'].some((name) => this.params?.[name] !== params[name]);
    this.params = params;
    this.title = params.referId ?? params.trackingNumber ?? params.id ?? 'Tracking';
    if (other) this.readAnew();
    else if (this.answer) this.draw(this.answer);
  }

  // readAnew shows the answer in any case.
  readAnew() {
    this.shown = null;
    this.read();
  }

  // read asks at once, then again and again, and draws an answer that differs from the one
  // before. A page that nobody sees asks nothing.
  async read() {
    clearTimeout(this.timer);
    this.asking?.abort();
    const {signal} = this.asking = new AbortController();
    const began = performance.now();
    try {
      const {referId = this.params.id, trackingNumber} = this.params;
      const answer = await get('/tracking', {referId, trackingNumber}, signal);
      if (signal.aborted) return;
      const text = JSON.stringify(answer);
      this.session.connected('');
      this.readAt = new Date();
      if (text === this.shown) this.drawFoot();
      else this.draw(answer);
      this.shown = text;
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 401) {
        this.session.connected('ended');
        return;
      }
      if (this.shown && error.status === 0) this.session.connected('reconnecting');
      else this.fail(error);
    }
    const pause = Math.min(Math.max(shortestPause, share * (performance.now() - began)), longestPause);
    this.timer = setTimeout(() => { if (!document.hidden) this.read(); }, pause);
  }

  fail(error) {
    this.shown = null;
    this.answer = null;
    replace(this.main, this.back(), el('h1', {class: 'pad'}, visible(this.title)), this.session.failed(error, () => this.readAnew()));
    setText(this.foot, '');
  }

  back() { return el('p', {class: 'pad'}, el('a', {href: '#/deliveries', 'aria-keyshortcuts': 'u'}, '‹ Deliveries')); }

  draw(answer) {
    this.answer = answer;
    const {trackings, events, more, moreEvents} = answer;
    keepPlace(this.root, () => replace(this.main, this.back(),
      trackings.length > 1 && this.index(trackings, more),
      el('div', {class: 'beside'},
        el('div', {}, trackings.slice(0, trackings.length > 5 ? 1 : trackings.length).map((t, i) => this.part(t, i))),
        this.events(events, moreEvents))));
    this.drawFoot();
  }

  drawFoot() {
    const {askedAt} = this.answer;
    setText(this.foot, `Read from the store at ${localClock(this.readAt)}; the service ${askedAt ? 'last answered ' : 'has not answered yet'}`);
    if (askedAt) this.foot.append(time(askedAt));
  }

  // index lists the parcels of an order, or the orders that share a number.
  index(trackings, more) {
    return el('section', {class: 'pad'}, el('h2', {}, count(trackings.length + more, 'tracking')),
      el('ul', {class: 'chips'}, trackings.map((t) => el('li', {}, el('a', {class: `chip tone-${t.tone || 'none'}`, href: this.session.link('tracking', {referId: t.referId, trackingNumber: t.trackingNumber})},
        visible(`${t.referId} ${t.trackingNumber}`.trim()), ': ', visible(t.statusText))))),
      more > 0 && el('p', {class: 'faint'}, `${count(more, 'more tracking', 'more trackings')} not shown`));
  }

  part(t, i) {
    const heading = el(i === 0 ? 'h1' : 'h2', {}, visible(t.referId || t.trackingNumber), t.referId && t.trackingNumber && el('span', {class: 'id faint'}, ` ${visible(t.trackingNumber)}`));
    const facts = t.header.filter((f) => !['Reference', 'Number', 'Status', 'Note'].includes(f.name));
    return el('section', {class: 'pad parcel'}, heading,
      el('p', {class: 'lead'}, badge(t.statusText || 'not reported', t.tone), ' ', visible(t.place),
        t.transit && el('span', {class: 'faint'}, ` ${t.transit} in transit`),
        t.since?.long && el('span', {class: 'tone-caution'}, ` no checkpoint for ${t.since.text}`)),
      t.unverified && el('p', {class: 'tone-caution'}, `! An event that did not verify changes nothing: ${visible(t.unverified.statusLabel || t.unverified.event)}`),
      el('dl', {class: 'facts'}, facts.map((f) => [el('dt', {}, f.name), el('dd', {}, visible(f.value))])),
      this.timeline(t, i),
      el('div', {class: 'commands'}, command(this.session, t.commands.show), command(this.session, t.commands.wait)));
  }

  timeline(t, i) {
    if (t.timeline.length === 0) return el('p', {class: 'faint'}, 'No checkpoints reported.');
    const oldest = Boolean(this.params.oldest);
    const stops = oldest ? [...t.timeline].reverse() : t.timeline;
    const names = ['', 'Local time', 'Offset', 'UTC', 'Event', 'Place', 'Note', 'Since the one before'];
    return el('div', {},
      el('div', {class: 'section-head'}, el('h2', {}, count(t.timeline.length + t.earlier, 'checkpoint')),
        el('button', {type: 'button', class: 'quiet', 'data-key': `order ${i}`, 'aria-keyshortcuts': 'o', onclick: () => this.turn()}, oldest ? 'Show the newest first' : 'Show the oldest first')),
      axis(t.timeline),
      copyTable(el('table', {class: `timeline ${oldest ? 'oldest' : 'newest'}`, role: 'table', 'aria-label': 'Checkpoints'},
        el('thead', {role: 'rowgroup', class: 'unseen'}, el('tr', {role: 'row'}, names.map((name, n) => el('th', {role: 'columnheader', scope: 'col', 'aria-hidden': n === 0 ? 'true' : null}, name)))),
        el('tbody', {role: 'rowgroup'}, stops.map((stop) => checkpoint(stop, stop === t.timeline[0] ? t.tone : ''))))),
      t.earlier > 0 && el('p', {class: 'faint'}, `${count(t.earlier, 'earlier checkpoint')} not shown`));
  }

  turn() { this.session.go('tracking', {...this.params, oldest: !this.params.oldest}, {replace: true}); }

  events(events, more) {
    const several = new Set(events.map((e) => e.trackingNumber)).size > 1;
    const names = ['Received', 'ID', several && 'Number', 'Event', 'Status', 'Verified'].filter(Boolean);
    const rows = events.map((e) => el('tr', {},
      el('td', {class: 'nowrap'}, time(e.receivedAt, true)),
      el('td', {class: 'id'}, el('a', {href: this.session.link('deliveries', {id: e.delivery}), 'data-key': `event ${e.id}`}, e.id)),
      several && el('td', {class: 'id'}, visible(e.trackingNumber)),
      el('td', {}, visible(e.event || e.type), e.type !== 'event' && el('span', {class: 'faint'}, ` ${e.type}`)),
      el('td', {}, e.statusText && badge(e.statusText, e.tone)),
      el('td', {class: e.verified === 'yes' ? 'faint' : 'tone-caution'}, visible(e.trust))));
    return el('section', {class: 'pad events', 'aria-label': 'Events'}, el('h2', {}, events.length === 0 ? 'No events' : count(events.length, 'event')),
      events.length > 0 && el('div', {class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': 'Table of events', 'data-key': 'table of events'}, copyTable(el('table', {class: 'list'}, el('thead', {}, el('tr', {}, names.map((name) => el('th', {scope: 'col'}, name)))), el('tbody', {}, rows)))),
      more && el('p', {class: 'faint'}, 'Earlier events are not shown; ', el('code', {}, 'waybill events list --tracking-number NUMBER'), ' lists all.'));
  }

  key(event) {
    switch (event.key) {
      case 'j': return this.move(1);
      case 'k': return this.move(-1);
      case 'o': this.turn(); return true;
      case 'u': this.session.go('deliveries'); return true;
      case 'c':
        if (this.answer) this.session.copy(this.answer.trackings[0].commands.show, 'Command copied');
        return true;
    }
    return false;
  }

  // move focuses the link of another event, and returns whether there is one.
  move(by) {
    const all = [...this.root.querySelectorAll('.events td a')];
    const at = all.indexOf(document.activeElement);
    const to = all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)];
    to?.focus();
    to?.scrollIntoView({block: 'nearest'});
    return Boolean(to);
  }

  close() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.ending.abort();
  }
}

// checkpoint is a row of the timeline: a dot on a line that is longer, the more time
// passed since the checkpoint before.
function checkpoint(stop, tone) {
  const {gap} = stop;
  const size = gap ? steps.filter((s) => gap.seconds >= s).length : 0;
  const kind = [stop.anomalies.length > 0 && 'odd', gap?.long && 'long', tone && `tone-${tone}`, `gap-${size}`].filter(Boolean).join(' ');
  const cell = (name, ...children) => el('td', {role: 'cell', class: name}, children);
  return el('tr', {role: 'row', class: kind},
    el('td', {role: 'cell', class: 'rail', 'aria-hidden': 'true'}),
    cell('local', visible(stop.local)), cell('offset faint', stop.offset), cell('utc faint', stop.utc && [visible(stop.utc), el('span', {'aria-hidden': 'true'}, ' UTC')]),
    cell('event', visible(stop.eventType)), cell('place', visible(stop.place)),
    cell('note', stop.anomalies.map((a) => el('span', {title: a.kind}, `! ${visible(a.text)} `))),
    cell('gap', gap && gap.seconds > 0 ? el('span', {class: gap.long ? 'tone-caution' : 'faint'}, gap.text) : ''));
}

// axis draws the checkpoints to scale, days without any dashed.
function axis(timeline) {
  const stops = timeline.filter((s) => Number.isFinite(Date.parse(s.GMTTimestamp)));
  const times = stops.map((s) => Date.parse(s.GMTTimestamp));
  const first = Math.min(...times);
  const span = Math.max(...times) - first;
  if (stops.length < 2 || span <= 0) return null;
  const at = (ms) => `${(2 + 96 * (ms - first) / span).toFixed(2)}%`;
  const marks = stops.map((s, i) => {
    const x = at(times[i]);
    const line = i + 1 < stops.length && el('line', {x1: at(times[i + 1]), x2: x, y1: '12', y2: '12', class: s.gap?.long ? 'long' : ''});
    const wide = s.gap?.long && (times[i] - times[i + 1]) / span > 0.08;
    return [line, wide && el('text', {x: at((times[i] + times[i + 1]) / 2), y: '29', 'text-anchor': 'middle'}, s.gap.text),
      el('circle', {cx: x, cy: '12', r: '4', class: s.anomalies.length > 0 ? 'odd' : ''})];
  });
  return el('svg', {class: 'axis', width: '100%', height: '34', 'aria-hidden': 'true'}, marks);
}
