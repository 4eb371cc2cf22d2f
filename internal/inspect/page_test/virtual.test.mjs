import assert from 'node:assert/strict';
import {test} from 'node:test';
import {load} from './page.mjs';

const {Scale, visibleRange} = await load('virtual.js');

test('a list that fits scrolls as the box does', () => {
  const s = new Scale(1000);
  s.resize(900, 100);
  s.scrolled(350);
  assert.deepEqual([s.offset, s.height, s.place(400)], [350, 900, 400]);
  s.moveTo(5000);
  assert.deepEqual([s.offset, s.top], [800, 800]);
});

test('a list beyond the limit reaches every row', () => {
  const s = new Scale(1000);
  s.resize(100_000, 100);
  assert.equal(s.height, 1000);
  s.scrolled(900);
  assert.equal(s.offset, 99_900);
  s.scrolled(450);
  assert.equal(s.offset, 49_950);
  s.scrolled(470); // a short movement goes as far as the scrolling
  assert.equal(s.offset, 49_970);
  s.scrolled(0);
  assert.equal(s.offset, 0);
});

test('any row can be moved to, and then stands where the box is scrolled to', () => {
  const s = new Scale(1000);
  s.resize(100_000, 100);
  for (const offset of [0, 10, 12_345, 99_890, 99_900]) {
    const top = s.moveTo(offset);
    assert.ok(top >= 0 && top <= 900, `scroll position ${top}`);
    assert.ok(Math.abs(s.place(offset) - top) < 1e-6);
  }
});

test('the position stays when rows come and go', () => {
  const s = new Scale(1000);
  s.resize(2000, 100);
  s.moveTo(700);
  s.resize(500, 100);
  assert.equal(s.offset, 400);
});

test('visible rows', () => {
  assert.deepEqual(visibleRange(0, 100, 20, 1000), [0, 5]);
  assert.deepEqual(visibleRange(30, 100, 20, 1000), [1, 7]);
  assert.deepEqual(visibleRange(30, 100, 20, 3), [1, 3]);
  assert.deepEqual(visibleRange(0, 100, 20, 0), [0, 0]);
});
