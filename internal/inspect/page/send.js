// send.js sends a delivery, or an edited copy of it, and shows it as a command for curl.

import {el, replace, badge, dialog, visible} from './dom.js';
import {get, post} from './api.js';
import {command} from './command.js';
import {button, downloadButton, hint, path, pre} from './delivery.js';

/** withLineEnds gives edited text, which has LF, the original's CR LF if that has no other line ends. */
export const withLineEnds = (text, original) => (/^[^\r\n]*(\r\n[^\r\n]*)+$/.test(original) ? text.replaceAll('\n', '\r\n') : text);

const targetText = (t) => visible(t.filter ? `${t.filter}=>${t.url}` : t.url);

function targetField(session) {
  const select = el('select', {name: 'target'}, session.targets.map((t) => el('option', {value: t.id}, targetText(t))));
  return {select, field: el('label', {class: 'field'}, el('span', {}, 'Target'), select)};
}

/** openSend opens the dialog that sends a delivery. */
export function openSend(delivery, session, {edit}) {
  if (document.querySelector('dialog[open]')) return;
  if (session.readOnly || session.targets.length === 0 || !delivery.body) {
    dialog('Send again', hint(session.readOnly ? 'This page is read-only.' : delivery.body ? 'Start the page with a target: waybill inspect --to 3000, or waybill listen --ui --forward-to 3000.' : 'Its bytes were pruned.'));
    return;
  }
  const {body, signature} = delivery;
  const editable = body.text !== undefined && !body.cut;
  const {select, field} = targetField(session);
  const canSign = !signature.problem;
  const sign = el('input', {type: 'checkbox', name: 'sign', disabled: !canSign, onchange: update});
  const change = el('input', {type: 'checkbox', name: 'edit', onchange: () => { sign.checked = change.checked && canSign; update(); }});
  const text = el('textarea', {name: 'body', rows: '14', spellcheck: 'false', 'aria-label': 'Body to send', oninput: check});
  const problem = el('p', {class: 'hint', role: 'status'});
  const editor = el('div', {hidden: true}, text, problem, hint('An edited copy says that waybill made it up (Waybill-Synthetic).', body.masked && ' Secrets in it are masked.'));
  const submitter = button('Send', null, {type: 'submit', class: 'primary'});
  const outcome = el('ol', {class: 'outcomes', 'aria-live': 'polite'});
  const line = el('div', {});
  text.value = body.text ?? '';

  function check() {
    let why = '';
    try { JSON.parse(text.value); } catch (error) { why = `Not JSON, and sent as it is: ${error.message}`; }
    replace(problem, visible(why));
  }

  function update() {
    editor.hidden = !change.checked;
    check();
    const lines = delivery.commands.send.find((c) => c.target === select.value);
    replace(line, lines && command(session, change.checked ? lines.edited : sign.checked ? lines.resign : lines.replay));
  }

  async function submit(event) {
    event.preventDefault();
    submitter.disabled = true;
    try {
      const result = await post(`${path(delivery.id)}/send`, {target: select.value, sign: sign.checked, ...(change.checked && {body: withLineEnds(text.value, body.text)})}, ending.signal);
      outcome.prepend(el('li', {}, resultOf(result)));
    } catch (error) {
      if (!ending.signal.aborted) outcome.prepend(el('li', {}, session.failed(error)));
    }
    submitter.disabled = false;
  }

  select.addEventListener('change', update);
  const ending = new AbortController();
  const form = el('form', {class: 'send', onsubmit: submit}, field,
    delivery.verified !== 'yes' && hint('It is not verified.'),
    el('label', {}, sign, `Sign anew${canSign ? ` with ${visible(signature.scheme)}` : ''}`),
    editable && el('label', {}, change, 'Edit the body'), editor,
    el('div', {class: 'bar'}, submitter), hint('The same on the command line:'), line, outcome);
  const node = dialog(`Send delivery ${visible(delivery.id)} again`, form);
  node.addEventListener('close', () => ending.abort());
  change.checked = Boolean(edit && editable);
  sign.checked = change.checked && canSign;
  update();
  (change.checked ? text : select).focus();
}

function resultOf(result) {
  const words = result.status ? `${result.status} in ${Math.round(result.elapsedSeconds * 1000)} ms` : 'no answer';
  return [
    el('p', {}, badge(words, result.expected ? 'good' : 'bad'), ' from ', visible(result.target), result.signed && ', signed anew', result.synthetic && ', made up'),
    result.problem && el('p', {class: 'problem'}, visible(result.problem)),
    result.location && hint(`The redirect to ${visible(result.location)} was not followed.`),
    result.settled && hint('It had been given up; now it counts as sent.'),
    result.notes.map((note) => hint(visible(note))),
    result.reply && pre(result.reply),
  ];
}

export function openCurl(delivery, session) {
  const place = el('div', {role: 'status'}, 'Loading…');
  const {select, field} = targetField(session);
  const ending = new AbortController();

  async function load() {
    try {
      const answer = await get(`${path(delivery.id)}/curl`, {target: select.value}, ending.signal);
      replace(place, pre(answer.command, 'text'),
        el('div', {class: 'bar'}, button('Copy', () => session.copy(answer.command, 'Command copied'), {class: 'primary'}),
          answer.file && downloadButton(`Download ${answer.file}`, delivery, session)),
        answer.notes.length > 0 && el('ul', {}, answer.notes.map((note) => el('li', {}, visible(note)))));
    } catch (error) {
      if (!ending.signal.aborted) replace(place, session.failed(error));
    }
  }

  select.addEventListener('change', load);
  dialog(`Delivery ${visible(delivery.id)} as a command for curl`, session.targets.length > 0 && field, place).addEventListener('close', () => ending.abort());
  load();
}
