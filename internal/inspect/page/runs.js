// runs.js shows the runs of `waybill create` with their outcomes, and one run with its
// rows, those first that need something done.

import {el, replace, setText, badge, time, visible, copyTable, localClock, count} from './dom.js';
import {Watch, command, keepPlace, moveKeys} from './watch.js';

const number = (n) => n.toLocaleString('en-US');

// What rows may be, with the tones of the command line.
const outcomes = [['accepted', 'good'], ['rejected', 'bad'], ['unknown', 'caution'], ['pending', ''], ['superseded', 'faint'], ['dismissed', 'faint']];

/** show is the view of runs, or of the run that params.id names. */
export function show(root, params, session) {
  return new Runs(root, params, session);
}

class Runs {
  constructor(root, params, session) {
    Object.assign(this, {root, session, params});
    this.title = params.id ? `Run ${params.id}` : 'Runs';
    this.keys = params.id ? [['u', 'back to the runs']] : [['j', 'next run'], ['k', 'previous run'], ['Enter', 'open it']];
    this.main = el('div', {});
    this.foot = el('div', {class: 'status-line'});
    root.append(this.main, this.foot);
    const path = params.id ? `/runs/${encodeURIComponent(params.id)}` : '/runs';
    this.watch = new Watch(session, path, () => ({limit: params.limit}), (answer) => this.draw(answer), (error) => this.fail(error));
    this.watch.unchanged = () => this.drawFoot();
    this.watch.now(true);
  }

  update() { return false; }

  fail(error) {
    replace(this.main, this.params.id && this.back(), el('h1', {class: 'pad'}, this.title), this.session.failed(error, () => this.watch.now(true)));
    setText(this.foot, '');
  }

  back() { return el('p', {class: 'pad'}, el('a', {href: '#/runs', 'aria-keyshortcuts': 'u'}, '‹ Runs')); }

  draw(answer) {
    keepPlace(this.root, () => replace(this.main, this.params.id ? this.run(answer) : this.list(answer)));
    this.drawFoot();
  }

  drawFoot() { setText(this.foot, `Read from the store at ${localClock(this.watch.readAt ?? new Date())}.`); }

  list({runs, more, maxLimit}) {
    if (runs.length === 0) {
      return [el('h1', {class: 'unseen'}, 'Runs'), el('div', {class: 'message'}, el('p', {}, 'No runs yet. Create trackings with:'), command(this.session, 'waybill create FILE'))];
    }
    const head = [['Run', 'key'], ['Created', 'nowrap'], ['Input', 'event'], ['State', ''], ['Outcome', 'wide'], ...outcomes.map(([name]) => [name[0].toUpperCase() + name.slice(1), `amount ${name}`]), ['Requests', 'amount wide'], ['Account', 'wide']];
    const rows = runs.map((r) => el('tr', {}, [
      el('a', {href: this.session.link('runs', {id: r.run}), 'data-key': r.run}, r.run), time(r.created), visible((r.files ?? []).join(' ')), badge(r.state, r.state === 'ended' ? 'faint' : 'caution', r.stateText),
      bar(r), ...outcomes.map(([name, tone]) => el('span', {class: r[name] > 0 ? `tone-${tone}` : 'faint'}, number(r[name]))), number(r.batches), visible(r.account),
    ].map((cell, i) => {
      const name = outcomes[i - 5]?.[0];
      return el('td', {class: `${head[i][1]} ${name && r[name] === 0 ? 'zero' : ''}`, 'data-label': name}, cell);
    })));
    const limit = Number(this.params.limit) || 50;
    return [el('h1', {class: 'unseen'}, 'Runs'),
      copyTable(el('table', {class: 'list cards runs'}, el('caption', {class: 'unseen'}, 'Runs'), el('thead', {}, el('tr', {}, head.map(([name, kind]) => el('th', {scope: 'col', class: kind.replace('id ', '')}, name)))), el('tbody', {}, rows))),
      more && (limit < maxLimit
        ? el('div', {class: 'bar'}, el('button', {type: 'button', onclick: () => this.session.go('runs', {limit: Math.min(limit * 3, maxLimit)})}, 'Show more'))
        : el('p', {class: 'pad'}, 'Earlier runs: ', el('code', {}, 'waybill runs list --limit 0')))];
  }

  run(r) {
    const facts = [['State', r.stateText], ['Input', (r.files ?? []).join(' ')], ['Account', r.account], ['Created', time(r.created)], ['Last sent', r.lastSent ? time(r.lastSent) : 'never'],
      ['Rows', `${number(r.new)} new, ${number(r.already)} already created, ${number(r.duplicates)} duplicates`], ['Requests', number(r.batches)]];
    return [this.back(), el('section', {class: 'pad'}, el('h1', {}, `Run ${visible(r.run)}`),
      bar(r),
      el('ul', {class: 'chips', 'aria-label': 'Outcome'}, outcomes.filter(([name]) => r[name] > 0).map(([name, tone]) => el('li', {}, el('span', {class: `chip tone-${tone || 'none'}`}, el('strong', {}, number(r[name])), ` ${name}`)))),
      el('dl', {class: 'facts'}, facts.map(([name, value]) => [el('dt', {}, name), el('dd', {}, typeof value === 'string' ? visible(value) : value)])),
      el('h2', {}, el('a', {href: this.session.link('trackings', {run: r.run})}, 'What is known of its trackings')),
      el('ul', {class: 'chips'}, (r.summary?.byStatus ?? []).map((s) => el('li', {}, el('a', {class: 'chip', href: this.session.link('trackings', {run: r.run, status: s.name})}, el('strong', {}, number(s.trackings)), ' ', visible(s.name))))),
      el('div', {class: 'commands'}, r.commands.map((text) => command(this.session, text))),
      !r.complete && el('p', {class: 'tone-caution'}, `Only the first ${number(r.examined)} rows were examined; `, el('code', {}, `waybill runs rows ${visible(r.run)}`), ' lists all.'),
      r.rows.map((state) => this.state(r, state)), this.batches(r))];
  }

  state(r, {state, tone, count: all, rows}) {
    const head = [['Input', 'wide'], ['Reference', 'id key'], ['Number', 'id number'], ['Carrier', 'wide'], ['Reason', 'event']];
    return folded(state, `${number(all)} ${state}`, ['rejected', 'unknown'].includes(state), `tone-${tone}`,
      copyTable(el('table', {class: 'list cards'}, el('thead', {}, el('tr', {}, head.map(([name, kind]) => el('th', {scope: 'col', class: kind.replace('id ', '')}, name)))),
        el('tbody', {}, rows.map((row) => el('tr', {}, [
          visible(`${row.file}:${row.line}`), el('a', {href: this.session.link('tracking', {referId: row.referId, trackingNumber: row.rawTrackingNumber}), 'data-key': `${state} ${row.file} ${row.line}`}, visible(row.referId || row.rawTrackingNumber)),
          visible(row.rawTrackingNumber), visible(row.carrierCode ?? ''), visible(row.reason),
        ].map((cell, i) => el('td', {class: head[i][1], 'data-copy': i === 1 ? row.referId : null}, cell))))))),
      rows.length < all && el('div', {class: 'bar'}, el('button', {type: 'button', onclick: () => this.session.go('runs', {id: r.run, limit: 2000})}, 'Show up to 2,000 of each state')));
  }

  batches(r) {
    const all = r.batchList ?? [];
    if (all.length === 0) return null;
    const head = ['Batch', 'State', 'Rows', 'HTTP', 'Sent', 'Took', 'Reason'];
    return folded('batches', count(all.length + r.earlierBatches, 'batch', 'batches'), false, '',
      r.earlierBatches > 0 && el('p', {class: 'faint'}, `The last ${all.length} of them`),
      el('div', {class: 'scroll-x', tabindex: '0', role: 'region', 'aria-label': 'Batches', 'data-key': 'table of batches'}, copyTable(el('table', {class: 'list'}, el('thead', {}, el('tr', {}, head.map((name) => el('th', {scope: 'col'}, name)))),
        el('tbody', {}, all.map((b) => el('tr', {}, [b.number, b.state, b.rows, b.httpStatus ?? '', b.began ? time(b.began) : '', b.tookSeconds ? `${b.tookSeconds.toFixed(3)} s` : '', visible(b.reason ?? '')].map((cell) => el('td', {}, cell)))))))));
  }

  key(event) {
    if (event.key === 'u' && this.params.id) {
      this.session.go('runs');
      return true;
    }
    return moveKeys(event, () => this.main.querySelectorAll('td.key a'));
  }

  close() { this.watch.close(); }
}

const folded = (key, title, open, tone, ...children) => el('details', {open}, el('summary', {class: tone, 'data-key': key}, title), children);

// bar draws the outcomes of a run to scale; the numbers stand beside it.
function bar(r) {
  const total = outcomes.reduce((sum, [name]) => sum + r[name], 0);
  let x = 0;
  const parts = total === 0 ? [] : outcomes.map(([name, tone]) => {
    const width = 100 * r[name] / total;
    const part = width > 0 && el('rect', {x: `${x}%`, y: '0', width: `${Math.max(width, 0.5)}%`, height: '8', class: `tone-${tone || 'none'}`});
    x += width;
    return part;
  });
  return el('svg', {class: 'outcome', width: '100%', height: '8', 'aria-hidden': 'true'}, parts);
}
