// api.js asks the program: JSON under /api/v1 and its stream of server-sent
// events. It is the only part of the page that makes requests.

import {query} from './address.js';
import {save} from './dom.js';

const place = 'waybill-token';
let token = ''; // of this tab: every request brings it

/**
 * takeToken takes the token out of the address, or the one that this tab has kept. It
 * returns true for one of the address, which then is that of the list.
 */
export function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (found) history.replaceState(null, '', '#/deliveries');
  try { token = found?.[1] ?? sessionStorage.getItem(place) ?? ''; } catch { token = found?.[1] ?? token; }
  keep(token);
  return Boolean(found);
}

function keep(value) {
  token = value;
  try { sessionStorage.setItem(place, value); } catch { /* not allowed: it lasts until the page is loaded again */ }
}

/** ApiError is a request that failed: status is 0 if no answer came. */
class ApiError extends Error {
  constructor(status, message, hint) {
    super(message);
    this.status = status;
    this.hint = hint ?? '';
  }
}

async function failure(response) {
  const text = await response.text().catch(() => '');
  let body = {};
  try { body = JSON.parse(text); } catch { /* not JSON: a plain text */ }
  return new ApiError(response.status, body.error || text.slice(0, 500).trim() || `HTTP status ${response.status}`, body.hint);
}

async function answer(path, {headers, ...options} = {}) {
  let response;
  try {
    response = await fetch(`/api/v1${path}`, {cache: 'no-store', credentials: 'omit', redirect: 'error', headers: {'Waybill-Token': token, ...headers}, ...options});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'no answer from the program', 'check that it is still running');
  }
  if (!response.ok) throw await failure(response);
  return response;
}

const request = async (path, options) => (await answer(path, options)).json();

/** get asks for JSON. signal, of an AbortController, ends it with an AbortError. */
export const get = (path, params, signal) => request(path + query(params), {signal});

/** post sends JSON to a route that changes something. */
export const post = (path, body, signal) => request(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body), signal});

/** download saves what a path has as a file: a link would not bring the token. */
export async function download(path, signal) {
  const response = await answer(path, {signal});
  save(await response.blob(), /filename="(.*)"/.exec(response.headers.get('Content-Disposition'))[1]);
}

/** openSession returns what the program says about itself, without the token that this tab keeps from then on. */
export async function openSession() {
  const {token: lasting, ...session} = await get('/session');
  keep(lasting);
  return session;
}

const firstPause = 250; // ms before the first attempt to connect again
const longestPause = 5000; // ms
const lostAfter = 7000; // ms without a connection from when on it counts as lost

/**
 * stream receives deliveries from number after on. It connects again by itself
 * and goes on behind the last number that came, until the AbortController that it
 * returns is aborted. A hidden page has no connection: browsers
 * allow six to a server. handlers: message(data); state(name) with "live", "reconnecting",
 * "lost" or "ended" (the token is not valid any more, as a problem says); problem(error)
 * for what the program says about the stream.
 */
export function stream(params, after, handlers) {
  let asking, timer, pause = firstPause, last = after, downSince = 0;
  const ending = new AbortController();

  async function connect() {
    clearTimeout(timer);
    asking?.abort();
    if (ending.signal.aborted || document.hidden) return;
    const {signal} = asking = new AbortController();
    try {
      for await (const {event, id, data} of events(`/stream${query({...params, after: last})}`, signal)) {
        if (event === 'problem') handlers.problem(new ApiError(0, data.error, data.hint));
        if (event !== 'deliveries') continue;
        pause = firstPause;
        downSince = 0;
        last = Math.max(last, id);
        handlers.state('live');
        handlers.message(data);
      }
    } catch (error) {
      if (!signal.aborted && !(error instanceof ApiError)) throw error;
      if (error.status === 401 && !signal.aborted) {
        handlers.state('ended');
        handlers.problem(error);
        return;
      }
    }
    if (!signal.aborted) retry();
  }

  function retry() {
    downSince ||= Date.now();
    handlers.state(Date.now() - downSince > lostAfter ? 'lost' : 'reconnecting');
    timer = setTimeout(connect, pause);
    pause = Math.min(pause * 2, longestPause);
  }

  document.addEventListener('visibilitychange', connect, {signal: ending.signal});
  ending.signal.addEventListener('abort', connect); // which ends it
  connect();
  return ending;
}

// events yields the server-sent events of a path, until its connection ends. EventSource
// would not bring the token.
async function* events(path, signal) {
  const reader = (await answer(path, {signal})).body.pipeThrough(new TextDecoderStream()).getReader();
  const read = () => reader.read().catch(() => ({done: true}));
  for (let text = '', part = await read(); !part.done; part = await read()) {
    const blocks = (text + part.value).split('\n\n');
    text = blocks.pop();
    for (const block of blocks) {
      const {id = 0, event, data} = /^(id: (?<id>\d+)\n)?(event: (?<event>\w+)\n)?data: (?<data>[^\n]+)$/.exec(block)?.groups ?? {};
      if (data) yield {event, id: Number(id), data: JSON.parse(data)};
    }
  }
}
