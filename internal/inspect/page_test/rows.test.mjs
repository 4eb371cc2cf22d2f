import assert from 'node:assert/strict';
import {test} from 'node:test';
import {load} from './page.mjs';

const {RowCache, NumberedRows, FoundRows, position, ranges} = await load('rows.js');

const delivery = (number) => ({delivery: number});
const down = (from, to) => Array.from({length: from - to + 1}, (_, i) => from - i);

// program answers like the list of deliveries, of which those with a number that
// matches are found, and notes what it was asked.
function program(last, matches = () => true, perAnswer = 100) {
  const asked = [];
  return {
    asked,
    ask: async (params) => {
      asked.push(params);
      if ('from' in params) return {deliveries: down(Math.min(params.to, last), params.from).map(delivery), next: null};
      const found = down((params.before ?? last + 1) - 1, 1).filter(matches);
      const rows = found.slice(0, perAnswer);
      return {deliveries: rows.map(delivery), next: found.length > perAnswer ? rows.at(-1) : null, last};
    },
  };
}

test('the cache is bounded, and what is used stays', () => {
  const c = new RowCache(3);
  for (const n of [1, 2, 3]) c.set(n, delivery(n));
  c.use(1);
  c.set(4, null);
  assert.deepEqual([c.size, c.has(1), c.has(2), c.get(4)], [3, true, false, null]);
});

test('positions in numbers from high to low', () => {
  assert.deepEqual([9, 8, 5, 4, 1, 0].map((n) => position([8, 5, 1], n)), [0, 0, 1, 2, 2, 3]);
});

test('ranges hold at most so many numbers', () => {
  assert.deepEqual(ranges([250, 249, 151, 150, 149, 1]), [[151, 250], [149, 150], [1, 1]]);
  for (const [from, to] of ranges(down(1000, 1))) assert.ok(to - from < 100);
  assert.deepEqual(ranges([]), []);
});

test('numbered rows are asked for where they are missing, one request at a time', async () => {
  const p = program(100_000);
  let busy = 0;
  const rows = new NumberedRows(async (params) => {
    assert.equal(++busy, 1);
    const answer = await p.ask(params);
    busy--;
    return answer;
  }, {}, {first: 1, last: 100_000});
  assert.equal(rows.numberAt(0), 100_000);
  rows.want(50_000, 50_040);
  rows.want(70_000, 70_040); // dragged on before the first answer
  await rows.wake();
  await new Promise(setImmediate);
  assert.deepEqual(rows.row(30_000), delivery(30_000));
  assert.ok(p.asked.length <= 2, `${p.asked.length} requests`);
});

test('a number without a delivery is known as such, and not asked for again', async () => {
  let asked = 0;
  const rows = new NumberedRows(async () => { asked++; return {deliveries: [delivery(3)]}; }, {}, {first: 1, last: 3});
  rows.want(0, 3);
  await new Promise(setImmediate);
  rows.want(0, 3);
  await new Promise(setImmediate);
  assert.deepEqual([rows.row(3), rows.row(2), rows.row(1), asked], [delivery(3), null, null, 1]);
});

test('what arrives waits until it is released', () => {
  const rows = new NumberedRows(async () => ({deliveries: []}), {}, {first: 1, last: 10});
  rows.arrive([delivery(12), delivery(11)], 12, false);
  assert.deepEqual([rows.count, rows.waiting], [10, 2]);
  assert.equal(rows.release(), 2);
  assert.deepEqual([rows.count, rows.waiting, rows.numberAt(0)], [12, 0, 12]);
  assert.equal(rows.release(), 0);
});

test('the first delivery of an empty store', () => {
  const rows = new NumberedRows(async () => ({deliveries: []}), {}, {first: 1, last: 0});
  assert.equal(rows.count, 0);
  rows.arrive([delivery(7)], 7, false);
  assert.equal(rows.release(), 1);
  assert.deepEqual([rows.count, rows.numberAt(0)], [1, 7]);
});

test('deliveries of an empty store that wait together', () => {
  const rows = new NumberedRows(async () => ({deliveries: []}), {}, {first: 1, last: 0});
  rows.arrive([delivery(1), delivery(2)], 2, false);
  rows.arrive([delivery(3)], 3, false);
  assert.equal(rows.release(), 3);
  assert.deepEqual([rows.count, rows.numberAt(2)], [3, 1]);
});

test('found rows go on until there are enough', async () => {
  const p = program(10_000, (n) => n % 7 === 0);
  const rows = new FoundRows(p.ask, {}, await p.ask({}));
  rows.want(0, 30);
  await new Promise(setImmediate);
  assert.equal(rows.count, 100);
  rows.want(80, 110);
  await new Promise(setImmediate);
  await rows.wake();
  assert.equal(rows.count, 200);
  assert.deepEqual(rows.numbers, down(10_000, 1).filter((n) => n % 7 === 0).slice(0, 200));
  assert.equal(rows.indexOf(rows.numberAt(150)), 150);
  assert.equal(rows.indexOf(6), -1);
});

test('a gap in what arrives is filled, with nothing lost or twice', async () => {
  const p = program(1000, () => true, 50);
  const rows = new FoundRows(p.ask, {}, {deliveries: down(300, 280).map(delivery), next: null, last: 300});
  rows.arrive(down(700, 650).map(delivery), 700, true);
  rows.release();
  rows.arrive(down(1000, 950).map(delivery), 1000, true);
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
  rows.release();
  assert.deepEqual(rows.numbers, down(1000, 280));
});

test('what a search has not examined of what arrives is asked for, though it has found nothing yet', async () => {
  const p = program(1000, (n) => n % 100 === 0);
  const rows = new FoundRows(p.ask, {}, {deliveries: down(300, 300).map(delivery), next: null, last: 350});
  rows.arrive([], 999, true);
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
  rows.release();
  assert.deepEqual(rows.numbers, [900, 800, 700, 600, 500, 400, 300]);
});

test('a failed request is made again later', async () => {
  let broken = true;
  let failed = 0;
  const rows = new NumberedRows(async ({from, to}) => {
    if (broken) throw new Error('no answer');
    return {deliveries: down(to, from).map(delivery)};
  }, {failed: () => failed++}, {first: 1, last: 5});
  rows.want(0, 5);
  await new Promise(setImmediate);
  broken = false;
  await rows.wake();
  assert.deepEqual([failed, rows.row(5)], [1, delivery(5)]);
});

test('after a change visible rows are asked for again, and others once they are visible', async () => {
  const asked = [];
  let changed = [];
  const rows = new NumberedRows(async ({from, to}) => { asked.push([from, to]); return {deliveries: down(to, from).map((n) => ({delivery: n, done: true}))}; },
    {changed: (numbers) => { changed = numbers; }}, {first: 1, last: 4});
  rows.arrive([1, 2, 3, 4].map((n) => ({delivery: n, done: n !== 3})), 4);
  rows.want(0, 2);
  await rows.refresh();
  assert.deepEqual([asked, changed, rows.row(3).done, rows.row(1)], [[[3, 4]], [3], true, undefined]);
  rows.want(2, 4);
  await new Promise(setImmediate);
  assert.deepEqual(asked, [[3, 4], [1, 2]]);
});

test('an answer from before a change is not taken', async () => {
  let answer, asked = 0;
  const rows = new NumberedRows(() => { asked++; return new Promise((resolve) => { answer = resolve; }); }, {}, {first: 1, last: 1});
  rows.want(0, 1);
  const old = answer;
  await rows.refresh();
  old({deliveries: [{delivery: 1, verified: 'no'}]});
  await new Promise(setImmediate);
  answer({deliveries: [{delivery: 1, verified: 'yes'}]});
  await new Promise(setImmediate);
  assert.deepEqual([asked, rows.row(1).verified], [2, 'yes']);
});

test('what is found and then gone leaves the list', async () => {
  const rows = new FoundRows(async () => ({deliveries: [delivery(5), delivery(2)]}), {}, {deliveries: [5, 3, 2].map(delivery), next: null, last: 5});
  rows.want(0, 3);
  await rows.refresh();
  assert.deepEqual(rows.numbers, [5, 2]);
});
