// rows.js knows which rows a list has and holds those that were asked for, up
// to a bound. It makes no elements, so it is tested without a browser.

const kept = 5000; // rows in memory
const perRequest = 100; // rows

/** RowCache holds rows by number; what was not used for longest leaves first. */
export class RowCache {
  #rows = new Map();

  constructor(limit = kept) { this.limit = limit; }

  get size() { return this.#rows.size; }
  has(number) { return this.#rows.has(number); }
  get(number) { return this.#rows.get(number); }

  /** set keeps a row; null is a number without a delivery. */
  set(number, row) {
    this.#rows.delete(number);
    this.#rows.set(number, row);
    for (const oldest of this.#rows.keys()) {
      if (this.#rows.size <= this.limit) break;
      this.#rows.delete(oldest);
    }
  }

  /** keep forgets all rows but those of numbers. */
  keep(numbers) {
    this.#rows = new Map(numbers.filter((number) => this.#rows.has(number)).map((number) => [number, this.#rows.get(number)]));
  }

  /** use keeps a row from leaving soon. */
  use(number) {
    if (this.#rows.has(number)) this.set(number, this.#rows.get(number));
  }
}

/** position returns where number stands, or would stand, in numbers from high to low. */
export function position(numbers, number) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] > number) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** ranges groups numbers from high to low into few [from, to], of at most limit each. */
export function ranges(numbers, limit = perRequest) {
  const all = [];
  for (const number of numbers) {
    const last = all.at(-1);
    if (last && last[1] - number < limit) last[0] = number;
    else all.push([number, number]);
  }
  return all;
}

// Rows asks for rows, one request at a time, and for what was wanted last: dragging
// the scroll bar asks for little that nobody sees.
class Rows {
  #busy = false;
  #closed = false;
  #age = 0; // how often the rows that were known may have changed

  // ask(params) returns a promise of an answer of /deliveries. changed(numbers) is
  // called after rows came, failed(error) after a request failed.
  constructor(ask, {changed = () => {}, failed = () => {}} = {}) {
    Object.assign(this, {ask, changed, failed});
    this.cache = new RowCache();
    this.wanted = []; // numbers that are visible
  }

  /** row returns a row; null if the number has none, undefined if it is not loaded. */
  row(number) { return this.cache.get(number); }

  /** want says which rows, from index first to before end, are visible. */
  want(first, end) {
    this.wanted = [];
    for (let index = first; index < Math.min(end, this.count); index++) {
      const number = this.numberAt(index);
      this.wanted.push(number);
      this.cache.use(number);
    }
    this.end = end;
    this.wake();
  }

  /** refresh asks again for the visible rows, and forgets the others until they are visible. */
  refresh() {
    this.#age++;
    this.cache.keep(this.wanted);
    return this.#fetch(this.wanted.filter((number) => this.cache.has(number)));
  }

  /** load gets those of numbers, from high to low, that are not in memory. */
  load(numbers) { return this.#fetch(numbers.filter((number) => !this.cache.has(number))); }

  /** gone is called for a number that has no row, or none any more. */
  gone() {}

  close() { this.#closed = true; }

  async #fetch(numbers) {
    for (const [from, to] of ranges(numbers)) await this.#ask(from, to, numbers);
  }

  // #ask gets the rows from a number to another. Those of the numbers wanted that do
  // not come are none.
  async #ask(from, to, numbers) {
    let age, deliveries;
    do {
      age = this.#age;
      ({deliveries} = await this.ask({from, to}));
    } while (age !== this.#age && !this.#closed);
    if (this.#closed) return;
    const came = new Map(deliveries.map((row) => [row.delivery, row]));
    const changed = [];
    for (const number of new Set([...numbers.filter((number) => number >= from && number <= to), ...came.keys()])) {
      if (this.indexOf(number) < 0) continue;
      const row = came.get(number) ?? null;
      if (JSON.stringify(row) !== JSON.stringify(this.cache.get(number))) changed.push(number);
      this.cache.set(number, row);
      if (!row) this.gone(number);
    }
    this.changed(changed);
  }

  async wake() {
    if (this.#busy || this.#closed) return;
    this.#busy = true;
    try {
      for (let next = this.next(); next && !this.#closed; next = this.next()) await next();
    } catch (error) {
      if (!this.#closed) this.failed(error);
    } finally {
      this.#busy = false;
    }
  }

  // missing returns a request for the first visible rows that are not loaded.
  missing() {
    const missing = this.wanted.filter((number) => !this.cache.has(number));
    if (missing.length === 0) return null;
    return () => this.#ask(...ranges(missing)[0], missing);
  }
}

/** NumberedRows are all deliveries: the number says where a row stands. */
export class NumberedRows extends Rows {
  constructor(ask, handlers, {first, last}) {
    super(ask, handlers);
    this.first = first; // the oldest that is kept
    this.last = last; // the newest that is shown
    this.newest = last; // the newest that is known
  }

  get count() { return Math.max(0, this.last - this.first + 1); }
  get complete() { return true; }
  get waiting() { return this.newest - this.last; } // arrivals that are not shown yet
  numberAt(index) { return this.last - index; }
  indexOf(number) { return number >= this.first && number <= this.last ? this.last - number : -1; }

  /** arrive takes new rows; they are shown with release. */
  arrive(rows, last, more) {
    for (const row of rows) this.cache.set(row.delivery, row);
    const first = this.newest === 0; // of an empty store
    this.newest = Math.max(this.newest, last, ...rows.map((row) => row.delivery));
    if (first && this.newest > 0) {
      this.first = more ? 1 : Math.min(this.newest, ...rows.map((row) => row.delivery));
      this.last = this.first - 1;
    }
  }

  /** release shows what has arrived and returns how many rows that are. */
  release() {
    const added = this.waiting;
    this.last = this.newest;
    return added;
  }

  next() { return this.missing(); }
}

const ahead = 50; // rows that are found before they are visible

/** FoundRows are some of the deliveries: refused ones, or those that a search finds step by step. */
export class FoundRows extends Rows {
  #held = []; // numbers that wait
  #gaps = []; // between what arrived and what was known before: {above, before}

  constructor(ask, handlers, {deliveries, next, last}) {
    super(ask, handlers);
    this.numbers = []; // from high to low
    this.before = next; // where the search goes on; null at its end
    this.newest = last;
    this.add(deliveries);
  }

  get count() { return this.numbers.length; }
  get complete() { return this.before === null; }
  get waiting() { return this.#held.length; } // with what arrived twice
  numberAt(index) { return this.numbers[index]; }

  indexOf(number) {
    const index = position(this.numbers, number);
    return this.numbers[index] === number ? index : -1;
  }

  gone(number) { this.numbers.splice(this.indexOf(number), 1); }

  add(rows) {
    for (const row of rows) {
      this.cache.set(row.delivery, row);
      if (this.indexOf(row.delivery) < 0) this.numbers.splice(position(this.numbers, row.delivery), 0, row.delivery);
    }
  }

  /** arrive takes new rows. With more, others may have come before them: they are asked for. */
  arrive(rows, last, more) {
    if (more) this.#gaps.push({above: this.newest, before: Math.min(last + 1, ...rows.map((row) => row.delivery))});
    this.#hold(rows);
    this.newest = Math.max(this.newest, last);
    this.wake();
  }

  #hold(rows) {
    for (const row of rows) {
      this.cache.set(row.delivery, row);
      this.#held.push(row.delivery);
    }
  }

  /** release shows what has arrived and returns how many rows were added. */
  release() {
    const before = this.numbers.length;
    const held = [...new Set(this.#held)].sort((a, b) => b - a);
    const newer = held.length === 0 || before === 0 || held.at(-1) > this.numbers[0];
    this.numbers = newer ? held.concat(this.numbers) : [...new Set(held.concat(this.numbers))].sort((a, b) => b - a);
    this.#held = [];
    return this.numbers.length - before;
  }

  next() {
    const gap = this.#gaps.at(-1);
    if (gap) return () => this.#fill(gap);
    if (this.before !== null && (this.end ?? 0) + ahead > this.numbers.length) return () => this.#find();
    return this.missing();
  }

  async #fill(gap) {
    const {above} = gap;
    const {deliveries, next} = await this.ask({before: gap.before});
    this.#gaps.splice(this.#gaps.indexOf(gap), 1);
    const rows = deliveries.filter((row) => row.delivery > above);
    this.#hold(rows);
    if (next !== null && next > above + 1 && rows.length === deliveries.length) this.#gaps.push({above, before: next});
    this.changed([]);
  }

  async #find() {
    const answer = await this.ask({before: this.before});
    this.before = answer.next;
    this.add(answer.deliveries);
    this.changed([]);
  }
}
