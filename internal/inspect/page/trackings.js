// trackings.js shows the list of trackings, with the filters, the columns and the
// summary of `waybill list`. The address holds the filters.

import {el, replace, setText, badge, visible, copyTable, localDate, localClock, localTime, count} from './dom.js';
import {get} from './api.js';
import {Watch, command, keepPlace, moveKeys} from './watch.js';

const typingPause = 400; // ms without a key before a filter is used
const firstRows = 200;

// The flags of `waybill list`: name, label, placeholder, and the choices they have.
const fields = [
  ['refer-id', 'Reference', 'ORD-10*'],
  ['status', 'Status', 'delivered', 'status'],
  ['carrier', 'Carrier', 'dhl', 'carrier'],
  ['state', 'State', 'rejected', 'state'],
  ['run', 'Run', '12', 'run'],
  ['since', 'Updated since', '48h or 2026-11-20'],
  ['stale', 'Not updated for', '48h'],
  ['stuck', 'No checkpoint for', '7d'],
];

// The columns: label, what --sort calls it, class of its cells.
const columns = [
  ['Reference', 'reference', 'id key'], ['Number', 'number', 'id number'], ['Carrier', 'carrier', 'wide'], ['State', '', 'wide'],
  ['Status', 'status', 'status'], ['Latest event', '', 'event'], ['Checkpoint', 'checkpoint', 'nowrap mid'],
  ['Updated', 'updated', 'nowrap updated'], ['Source', '', 'wide'], ['Run', '', 'amount wide'],
];

/** show is the view of trackings. */
export function show(root, params, session) {
  return new Trackings(root, params, session);
}

class Trackings {
  title = 'Trackings';
  keys = [['j', 'next tracking'], ['k', 'previous tracking'], ['Enter', 'open it'], ['s', 'sort: latest update first, or as created']];
  inputs = {};
  rows = new Map(); // by key: the row's node and what it shows

  constructor(root, params, session) {
    Object.assign(this, {root, session});
    this.build();
    this.watch = new Watch(session, '/trackings', () => this.params, (answer) => this.draw(answer), (error) => this.fail(error));
    this.watch.unchanged = () => this.drawFoot();
    this.sums = new Watch(session, '/trackings/summary', () => this.params, (summary) => this.count(summary), () => this.count(null));
    this.update(params);
    get('/trackings/choices').then((all) => this.offer(all), () => {});
  }

  build() {
    const inputs = fields.map(([name, label, example, choices]) => {
      this.inputs[name] = el('input', {name, type: 'text', placeholder: example, list: choices && `choices-${choices}`, autocomplete: 'off', spellcheck: 'false',
        'data-filter': name === 'refer-id', oninput: () => this.typed(typingPause), onchange: () => this.typed(0)});
      return el('label', {class: 'field'}, el('span', {}, label), this.inputs[name]);
    });
    this.inputs.sort = el('select', {name: 'sort', onchange: () => this.typed(0)}, el('option', {value: ''}, 'created'));
    this.inputs['not-checked'] = el('input', {name: 'not-checked', type: 'checkbox', onchange: () => this.typed(0)});
    this.rest = el('details', {class: 'more-filters'}, el('summary', {}, 'More filters'), el('div', {class: 'bar'}, inputs.slice(4),
      el('label', {class: 'field'}, el('span', {}, 'Sort by'), this.inputs.sort),
      el('label', {}, this.inputs['not-checked'], 'Not checked yet')));
    this.choices = el('div', {hidden: true});
    const form = el('form', {class: 'filters', role: 'search', 'aria-label': 'Filters', onsubmit: (event) => { event.preventDefault(); this.typed(0); }},
      el('div', {class: 'bar'}, inputs.slice(0, 4), this.clear = el('button', {type: 'button', class: 'quiet', onclick: () => this.session.go('trackings')}, 'Clear')),
      this.rest, this.choices);
    this.summary = el('ul', {class: 'chips', 'aria-label': 'Summary'});
    this.notes = el('div', {});
    this.head = el('tr', {});
    this.body = el('tbody', {});
    this.table = copyTable(el('table', {class: 'list cards'}, el('caption', {class: 'unseen'}, 'Trackings'), el('thead', {}, this.head), this.body));
    this.foot = el('div', {class: 'status-line'});
    this.more = el('div', {class: 'bar'});
    this.root.append(el('h1', {class: 'unseen'}, 'Trackings'), form, this.summary, this.notes, this.table, this.more, this.foot);
  }

  // offer fills the lists of the filters with values that the store has.
  offer(all) {
    for (const [, , , name] of fields) {
      if (name) this.choices.append(el('datalist', {id: `choices-${name}`}, all[name].map((value) => el('option', {value}))));
    }
    this.inputs.sort.append(...all.sort.filter((word) => word !== 'created').map((word) => el('option', {value: word}, word)));
    this.inputs.sort.value = this.params.sort ?? '';
  }

  /** update shows what other params of the address ask for. */
  update(params) {
    this.params = params;
    this.session.listed = params;
    for (const [name, input] of Object.entries(this.inputs)) {
      if (input.type === 'checkbox') input.checked = Boolean(params[name]);
      else if (input !== document.activeElement) input.value = params[name] ?? '';
    }
    if (fields.slice(4).some(([name]) => params[name]) || params['not-checked']) this.rest.open = true;
    this.clear.hidden = Object.keys(params).length === 0;
    this.drawHead();
    this.sums.stop();
    this.summed = null;
    this.watch.now(true);
  }

  typed(pause) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const params = Object.fromEntries(Object.entries(this.inputs).map(([name, input]) => [name, input.type === 'checkbox' ? input.checked : input.value.trim()]));
      this.session.go('trackings', params, {replace: true});
    }, pause);
  }

  // go shows the list with other params.
  go(params) { this.session.go('trackings', {...this.params, ...params}); }

  drawHead() {
    const [, down, by] = /^(-?)(.*)$/.exec(this.params.sort ?? '');
    replace(this.head, columns.map(([label, sort, kind]) => {
      const sorted = sort && sort === by;
      return el('th', {scope: 'col', class: kind.replace('id ', ''), 'aria-sort': sorted ? (down ? 'descending' : 'ascending') : null},
        sort ? el('button', {type: 'button', class: 'quiet sort', onclick: () => this.go({sort: sorted && !down ? `-${sort}` : sorted ? '' : sort})}, label, sorted ? (down ? ' ↓' : ' ↑') : '') : label);
    }));
  }

  fail(error) {
    this.answer = null;
    this.sums.stop();
    this.rows.clear();
    this.body.replaceChildren();
    this.table.hidden = true;
    replace(this.summary);
    replace(this.more);
    setText(this.foot, '');
    replace(this.notes, this.session.failed(error, () => this.watch.now(true)));
  }

  draw(answer) {
    this.answer = answer;
    const empty = answer.trackings.length === 0;
    keepPlace(this.root, () => {
      replace(this.notes, answer.notes.length > 0 && el('div', {class: 'message'}, answer.notes.map((note) => el('p', {}, visible(note))),
        answer.nextCommand && command(this.session, answer.nextCommand)));
      this.table.hidden = empty;
      this.drawRows(answer.trackings);
    });
    if (answer.summary) {
      this.sums.stop();
      this.count(answer.summary);
    } else {
      if (!this.summed) replace(this.summary, el('li', {class: 'total faint'}, 'Counting…'));
      this.sums.start();
    }
    this.drawFoot();
  }

  // count shows the summary of all that match: null if that is not known.
  count(summary) {
    if (this.summed?.trackings !== summary?.trackings) this.session.announce(count(summary?.trackings ?? 0, 'tracking'));
    this.summed = summary;
    keepPlace(this.root, () => {
      if (summary) this.drawSummary(summary);
      else replace(this.summary);
      replace(this.more, this.drawMore(this.answer, summary));
    });
  }

  drawSummary(summary) {
    replace(this.summary, el('li', {class: 'total'}, el('strong', {}, count(summary.trackings, 'tracking'))), summary.byStatus.map((s) => {
      const on = this.params.status === s.name;
      return el('li', {}, el('a', {class: `chip tone-${s.tone || 'none'}`, href: this.session.link('trackings', {...this.params, status: on ? '' : s.name}), 'aria-current': on ? 'true' : null, 'data-key': `status ${s.name}`},
        el('strong', {}, s.trackings.toLocaleString('en-US')), ' ', visible(s.name)));
    }));
  }

  // drawRows reuses the rows that did not change, so that what is selected stays so.
  drawRows(trackings) {
    const rows = new Map();
    const nodes = trackings.map((t, i) => {
      const shown = JSON.stringify(t);
      let key = `${t.referId}\0${t.trackingNumber}`;
      if (rows.has(key)) key += `\0${i}`;
      const old = this.rows.get(key);
      const row = old?.shown === shown ? old : {shown, node: this.row(t, key)};
      rows.set(key, row);
      return row.node;
    });
    this.rows = rows;
    if (nodes.length !== this.body.children.length || nodes.some((node, i) => node !== this.body.children[i])) this.body.replaceChildren(...nodes);
  }

  row(t, key) {
    const href = this.session.link('tracking', {referId: t.referId, trackingNumber: t.trackingNumber});
    const cells = [
      el('a', {href, 'data-key': key}, visible(t.referId || t.trackingNumber)), visible(t.trackingNumber), visible(t.carrierCode ?? ''), t.stateText,
      t.statusText && badge(t.statusText, t.tone), visible(t.latestEvent || t.reason || ''), moment(t.checkpoint),
      t.learntAt && el('span', {class: t.stale ? 'tone-caution' : ''}, moment(t.learntAt)), t.source ?? '', t.run ?? '',
    ];
    const copies = {0: t.referId};
    return el('tr', {}, cells.map((cell, i) => el('td', {class: columns[i][2], 'data-copy': copies[i]}, cell)));
  }

  drawMore(answer, summary) {
    if (!answer || answer.summary) return [];
    const limit = Number(this.params.limit) || firstRows;
    const left = summary ? count(summary.trackings - answer.trackings.length, 'more tracking', 'more trackings') : 'more trackings';
    if (limit < answer.maxLimit) {
      return el('button', {type: 'button', 'data-key': 'more', onclick: () => this.go({limit: Math.min(limit * 3, answer.maxLimit)})}, `Show more of ${left}`);
    }
    return [el('p', {}, `${left} not shown. Narrow the list with a filter, or write all of it:`), command(this.session, answer.exportCommand)];
  }

  drawFoot() {
    const shown = this.answer ? `${count(this.answer.trackings.length, 'row')}. ` : '';
    setText(this.foot, `${shown}Read from the store at ${localClock(this.watch.readAt ?? new Date())}; the service is not asked.`);
  }

  key(event) {
    if (event.key === 's') {
      this.go({sort: this.params.sort === '-updated' ? '' : '-updated'});
      return true;
    }
    return moveKeys(event, () => this.body.querySelectorAll('a'));
  }

  close() {
    clearTimeout(this.timer);
    this.watch.close();
    this.sums.close();
  }
}

// moment shows a time to the minute, as a spreadsheet takes it.
function moment(value) {
  const date = new Date(value ?? NaN);
  if (Number.isNaN(date.getTime())) return visible(value ?? '');
  return el('time', {datetime: date.toISOString(), title: localTime(value)}, `${localDate(date)} ${localClock(date).slice(0, 5)}`);
}
