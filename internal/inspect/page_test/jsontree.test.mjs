import assert from 'node:assert/strict';
import {test} from 'node:test';
import {load} from './page.mjs';

const {whole, children, raw} = await load('jsontree.js');

// walk returns the pointer and the literal of every value.
function walk(text) {
  const all = [];
  const visit = (value) => {
    all.push(`${value.pointer}=${raw(value)}`);
    if ('{['.includes(value.text[value.start] ?? ' ')) for (const child of children(value)) visit(child);
  };
  visit(whole(text));
  return all.slice(1);
}

test('a tree keeps numbers, order and repeated names as they were sent', () => {
  assert.deepEqual(walk(' [1.0, {"b":1e5,"a":2,"a":2.00} ,[ ],{}, "a]\\"", null]\n'),
    ['/0=1.0', '/1={"b":1e5,"a":2,"a":2.00}', '/1/b=1e5', '/1/a=2', '/1/a=2.00', '/2=[ ]', '/3={}', '/4="a]\\""', '/5=null']);
  assert.deepEqual(walk('{"a/b~":{"":"\\\\"},"\\u0041":1}'), ['/a~1b~0={"":"\\\\"}', '/a~1b~0/="\\\\"', '/A=1']);
});

test('a text that is cut anywhere ends there', () => {
  const text = '[{"a":[1,2,{"b":"x\\\\\\"y"}],"c":null},{"d":[[],{}]}]';
  for (let end = 0; end <= text.length; end++) {
    for (const one of walk(text.slice(0, end))) assert.ok(one.length < 2 * text.length, one);
  }
  assert.deepEqual(walk('{"a":[1,2'), ['/a=[1,2', '/a/0=1', '/a/1=2']);
  for (const bad of ['', '{]', '[,]', '[1,,2]', '{"a"}', '}', '"', '{"a":', 'x']) walk(bad);
});

test('large and deep texts take little time', () => {
  const began = Date.now();
  const count = (text) => [...children(whole(text))].length;
  assert.equal(count(`[${'1,'.repeat(100_000)}1]`), 100_001);
  assert.equal(count('['.repeat(200_000) + ']'.repeat(200_000)), 1);
  assert.equal(count(`["${'\\\\'.repeat(100_000)}"]`), 1);
  assert.equal(count(`["${'\\"'.repeat(100_000)}"]`), 1);
  assert.ok(Date.now() - began < 5000);
});
