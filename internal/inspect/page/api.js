// api.js asks the program: JSON under /api/v1 and its stream of server-sent
// events. It is the only part of the page that makes requests.

import {query} from './address.js';

const base = '/api/v1';
let token = ''; // for requests that change something; never stored

/** ApiError is a request that failed: status is 0 if no answer came. */
export class ApiError extends Error {
  constructor(status, message, hint) {
    super(message);
    this.status = status;
    this.hint = hint ?? '';
  }
}

/** url returns the address of a path below /api/v1, for links to downloads. */
export const url = (path, params) => base + path + query(params);

async function failure(response) {
  const text = await response.text().catch(() => '');
  let body = {};
  try { body = JSON.parse(text); } catch { /* not JSON: a plain text */ }
  return new ApiError(response.status, body.error || text.slice(0, 500).trim() || `HTTP status ${response.status}`, body.hint);
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, {cache: 'no-store', credentials: 'same-origin', redirect: 'error', ...options});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'no answer from the program', 'check that it is still running');
  }
  if (!response.ok) throw await failure(response);
  return response.json();
}

/** get asks for JSON. signal, of an AbortController, ends it with an AbortError. */
export const get = (path, params, signal) => request(url(path, params), {signal});

/** post sends JSON to a route that changes something, with the session's token. */
export function post(path, body, signal) {
  const headers = {'Content-Type': 'application/json', 'Waybill-Token': token};
  return request(base + path, {method: 'POST', headers, body: JSON.stringify(body), signal});
}

/** openSession returns what the program says about itself, without the token, which post keeps. */
export async function openSession() {
  const {token: secret, ...session} = await get('/session');
  token = secret ?? '';
  return session;
}

const firstPause = 250; // ms before the first attempt to connect again
const longestPause = 5000; // ms
const lostAfter = 7000; // ms without a connection from when on it counts as lost

/**
 * stream receives deliveries from number after on. It connects again by itself
 * and goes on behind the last number that came. params() is asked at each
 * connection. A hidden page has no connection: browsers
 * allow six to a server. handlers: message(data); state(name) with "live", "reconnecting",
 * "lost" or "ended" (the session is not valid any more); problem(error) for what
 * the program says about the stream.
 */
export function stream(params, after, handlers) {
  let source, timer, pause = firstPause, last = after, downSince = 0, closed = false;

  function connect() {
    clearTimeout(timer);
    source?.close();
    if (closed || document.hidden) return;
    source = new EventSource(url('/stream', {...params(), after: last}));
    source.onopen = () => {
      pause = firstPause;
      downSince = 0;
      handlers.state('live');
    };
    source.addEventListener('deliveries', (event) => {
      last = Math.max(last, Number(event.lastEventId));
      handlers.message(JSON.parse(event.data));
    });
    source.addEventListener('problem', (event) => {
      const {error, hint} = JSON.parse(event.data);
      handlers.problem(new ApiError(0, error, hint));
    });
    source.onerror = retry;
  }

  function retry() {
    source.close();
    if (closed) return;
    downSince ||= Date.now();
    handlers.state(Date.now() - downSince > lostAfter ? 'lost' : 'reconnecting');
    timer = setTimeout(async () => {
      const status = await get('/session').then(() => 200, (error) => error.status);
      if (closed || document.hidden) return;
      if (status === 401) handlers.state('ended');
      else if (status === 0) retry();
      else connect();
    }, pause);
    pause = Math.min(pause * 2, longestPause);
  }

  document.addEventListener('visibilitychange', connect);
  connect();
  return {
    close() {
      closed = true;
      document.removeEventListener('visibilitychange', connect);
      connect();
    },
  };
}
