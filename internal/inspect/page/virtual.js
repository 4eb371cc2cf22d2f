// virtual.js shows a list of any length: only the rows that are visible, and a
// few around them, are in the page.

const longestHeight = 8_000_000; // px; browsers cut elements from 17 million on
const spareRows = 8; // rows kept above and below what is visible
const settleAfter = 150; // ms without scrolling

/**
 * Scale maps the scroll position of a box to that in the list. In a list higher than
 * the limit, short movements go as far as the scrolling, long ones to the same part.
 */
export class Scale {
  constructor(limit = longestHeight) {
    this.limit = limit;
    this.total = 0; // px of all rows
    this.viewport = 0; // px that are visible
    this.offset = 0; // px of the rows above the visible ones
    this.top = 0; // px, the scroll position for it
  }

  get height() { return Math.min(this.total, this.limit); }
  get exact() { return this.total <= this.limit; }
  get maxOffset() { return Math.max(0, this.total - this.viewport); }
  get maxTop() { return Math.max(0, this.height - this.viewport); }

  resize(total, viewport) {
    this.total = total;
    this.viewport = viewport;
    this.moveTo(this.offset);
  }

  /** moveTo sets the offset and returns the scroll position for it. */
  moveTo(offset) {
    this.offset = Math.min(Math.max(0, offset), this.maxOffset);
    this.top = this.exact || this.maxOffset === 0 ? this.offset : this.offset / this.maxOffset * this.maxTop;
    return this.top;
  }

  scrolled(top) {
    const moved = top - this.top;
    this.top = top;
    if (this.exact) this.offset = top;
    else if (top <= 0) this.offset = 0;
    else if (top >= this.maxTop - 1) this.offset = this.maxOffset;
    else if (Math.abs(moved) <= this.viewport) this.offset += moved;
    else this.offset = top / this.maxTop * this.maxOffset;
    this.offset = Math.min(Math.max(0, this.offset), this.maxOffset);
  }

  /** place returns where in the box a row stands whose distance from the list's start is given. */
  place(distance) { return distance - this.offset + this.top; }
}

/** visibleRange returns the first row that is visible and the one behind the last, of count. */
export function visibleRange(offset, viewport, rowHeight, count) {
  const first = Math.min(Math.max(0, Math.floor(offset / rowHeight)), Math.max(0, count - 1));
  return [first, Math.min(count, Math.ceil((offset + viewport) / rowHeight))];
}

/**
 * VirtualList draws rows into body, behind head in box, which scrolls. source has
 * count, keyAt(index), make(key) for a row's element, mark(element, key, index)
 * for what changes without a new one, and drawn(from, to, first) with the rows in
 * the page and the first visible one. A row is as high as the min-height of body.
 */
export class VirtualList {
  #scale = new Scale();
  #nodes = new Map(); // by key
  #stale = new Set(); // keys of rows to make anew
  #frame = 0;
  #settling = 0;
  #added = 0; // rows that were inserted above what is visible, since the last draw
  #hidden = false;
  #sizes = new ResizeObserver(() => this.draw());

  constructor(box, head, body, source) {
    Object.assign(this, {box, head, body, source});
    box.addEventListener('scroll', () => {
      if (this.#hidden || box.clientHeight === 0) return;
      this.#scale.scrolled(box.scrollTop);
      this.draw();
      clearTimeout(this.#settling);
      this.#settling = setTimeout(() => this.#moveTo(this.#scale.offset), settleAfter);
    }, {passive: true});
    this.#sizes.observe(box);
  }

  /** atTop says whether the first row is visible as a whole. */
  get atTop() { return this.#scale.offset < 2; }

  /** insert takes new rows at the top. Away from it, what is visible stays. */
  insert(added) {
    if (!this.atTop) this.#added += added;
    this.draw();
  }

  /** changed makes rows anew, by default all. */
  changed(keys) {
    for (const key of keys ?? this.#nodes.keys()) this.#stale.add(key);
    this.draw();
  }

  /** draw updates the page before it is painted next. */
  draw() { this.#frame ||= requestAnimationFrame(() => this.#draw()); }

  /** scrollTo makes the row at index visible, with as little movement as possible. */
  scrollTo(index) {
    this.#measure();
    const start = index * this.rowHeight;
    const {offset, viewport} = this.#scale;
    if (start < offset) this.#moveTo(start);
    else if (start + this.rowHeight > offset + viewport) this.#moveTo(start + this.rowHeight - viewport);
    this.draw();
  }

  get pageRows() { return Math.max(1, Math.floor(this.#scale.viewport / this.rowHeight)); }

  node(key) { return this.#nodes.get(key); }

  close() {
    this.#sizes.disconnect();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#settling);
  }

  #moveTo(offset) {
    const top = Math.round(this.#scale.moveTo(offset));
    this.#scale.top = top;
    if (Math.abs(this.box.scrollTop - top) >= 1) this.box.scrollTop = top;
  }

  #measure() {
    this.count = this.source.count;
    this.rowHeight = parseFloat(getComputedStyle(this.body).minHeight) || 1;
    const viewport = Math.max(this.rowHeight, this.box.clientHeight - this.head.offsetHeight);
    const offset = this.#scale.offset + this.#added * this.rowHeight;
    const same = this.#scale.total === this.count * this.rowHeight && this.#scale.viewport === viewport;
    if (same && this.#added === 0 && !this.#hidden) return;
    this.#added = 0;
    this.#hidden = false;
    this.#scale.resize(this.count * this.rowHeight, viewport);
    this.body.style.height = `${this.#scale.height}px`;
    this.#moveTo(offset);
  }

  #draw() {
    this.#frame = 0;
    if (this.box.clientHeight === 0) {
      this.#hidden = true; // and forgets where it was scrolled to
      return;
    }
    this.#measure();
    const [first, end] = visibleRange(this.#scale.offset, this.#scale.viewport, this.rowHeight, this.count);
    const from = Math.max(0, first - spareRows);
    const to = Math.min(this.count, end + spareRows);
    const wanted = new Map();
    for (let index = from; index < to; index++) wanted.set(this.source.keyAt(index), index);
    for (const [key, node] of this.#nodes) {
      if (wanted.has(key) && !this.#stale.has(key)) continue;
      node.remove();
      this.#nodes.delete(key);
    }
    this.#stale.clear();
    let place = this.body.firstChild;
    for (const [key, index] of wanted) {
      const node = this.#nodes.get(key) ?? this.source.make(key);
      this.#nodes.set(key, node);
      if (node === place) place = place.nextSibling;
      else this.body.insertBefore(node, place);
      const y = Math.round(this.#scale.place(index * this.rowHeight));
      if (node.y !== y) node.style.transform = `translateY(${node.y = y}px)`;
      this.source.mark(node, key, index);
    }
    this.source.drawn(from, to, first);
  }
}
