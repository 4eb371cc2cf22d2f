import assert from 'node:assert/strict';
import {test} from 'node:test';
import {load} from './page.mjs';

const dom = await load('dom.js');
const {parse, link} = await load('address.js');
const {withLineEnds} = await load('send.js');
const {verifiedWords, forwardingWords, copyCells} = await load('deliveryrow.js');

test('what controls, reorders or hides text is visible', () => {
  const of = {
    'a\u202eb': 'a\\u{202e}b', '\x1b[31m': '\\u{1b}[31m', '\x9b': '\\u{9b}', 'a\u200bb': 'a\\u{200b}b', '\ufeff': '\\u{feff}', '\u2028': '\\u{2028}',
    '\ue000': '\\u{e000}', '\ud800': '\\u{d800}', '\u{e0041}': '\\u{e0041}', '\u00ad': '\\u{ad}', '\u3164': '\\u{3164}', '\ufffe': '\\u{fffe}',
    'a\n\tb': 'a\\n\\tb', 'ü 日本 😀 \u2764\ufe0f <b>': 'ü 日本 😀 \u2764\ufe0f <b>',
  };
  for (const [text, want] of Object.entries(of)) assert.equal(dom.visible(text), want);
  assert.equal(dom.visibleText('a\n\t\rb'), 'a\n\t\\u{d}b');
  assert.equal(dom.visible(null), '');
});

test('cells of a copied table are no formulas, and identifiers stay text', () => {
  for (const [text, want] of [['=1+1', "'=1+1"], ['+49', '+49'], ['-5.2', '-5.2'], ['-', '-'], ['@x', "'@x"], ['a\tb\nc', 'a b c'], ['12', '12']]) assert.equal(dom.cellText(text), want);
  for (const [text, want] of [['00123', '="00123"'], ['123456789012', '="123456789012"'], ['12E5', '="12E5"'], ['1-2', '="1-2"'], ['MAR5', '="MAR5"'],
    ['=cmd()', '="=cmd()"'], ['1Z999AA10123456784', '1Z999AA10123456784'], ['12345', '12345']]) assert.equal(dom.cellText(text, true), want);
});

test('sizes and counts', () => {
  assert.deepEqual([0, 999, 1000, 15_499, 2_000_000].map(dom.bytes), ['0 B', '999 B', '1.0 kB', '15 kB', '2.0 MB']);
  assert.deepEqual([dom.count(1, 'row'), dom.count(1234, 'row'), dom.count(2, 'delivery', 'deliveries')], ['1 row', '1,234 rows', '2 deliveries']);
});

test('an address is read as it was written', () => {
  for (const [name, params] of [['deliveries', {}], ['deliveries', {id: 'refused:3', filter: 'event=a b,number=1Z*', search: '#?&/%'}], ['tracking', {referId: 'ü/1'}], ['runs', {id: 'a/b'}]]) {
    assert.deepEqual(parse(link(name, params)), {name, params});
  }
  assert.deepEqual(parse(''), {name: 'deliveries', params: {}});
  assert.deepEqual(parse('#/deliveries/%zz'), {name: 'deliveries', params: {id: '%zz'}});
  assert.equal(link('deliveries', {id: undefined, filter: '', refused: true}), '#/deliveries?refused=1');
});

test('words for a row', () => {
  assert.deepEqual(verifiedWords({verified: 'no', reason: 'signature_mismatch'}), ['no: signature_mismatch', 'bad']);
  assert.deepEqual(verifiedWords({verified: 'yes', bodyAuthenticated: false}), ['yes, body not authenticated', 'caution']);
  assert.deepEqual(forwardingWords({state: 'waiting', attempts: 2, status: 503}), ['retry 2, 503', 'caution']);
  assert.deepEqual(forwardingWords({state: 'dead', status: 500}), ['given up, 500', 'bad']);
  assert.equal(copyCells({id: '1', verified: 'yes', events: [{event: '=x', trackingNumber: '0012'}]})[3], '="0012"');
});

test('an edited body has the line ends of the original', () => {
  for (const [original, edited, want] of [['[\r\n]\r\n', '[\n1\n]', '[\r\n1\r\n]'], ['\r\n', '\n', '\r\n'], ['[\n]', '[\n\n]', '[\n\n]'],
    ['[\r\n\n]', '[\n\n]', '[\n\n]'], ['\n\r\n', '\n\n', '\n\n'], ['\r\r\n', '\n\n', '\n\n'], ['[]', '[\n]', '[\n]'], ['', '\n', '\n']]) assert.equal(withLineEnds(edited, original), want);
  withLineEnds('\n', '\r\n'.repeat(300_000)); // the longest body, at once
});
