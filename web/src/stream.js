// stream.js - one stream, kept open.
//
// Server-Sent Events read with fetch(): unlike an EventSource that can send the token in a header,
// tells why it was refused, and leaves the cursor to us. The cursor is the last `id:` line; whoever
// comes back with it misses nothing. After a connection that broke, the next try comes after a
// random wait that doubles up to half a minute, or when its `disconnect` message says.

const WAIT_FIRST_MS = 500;
const WAIT_LAST_MS = 30_000;
const SILENCE_MS = 60_000; // keep-alives come every 20 s
const LONGEST_QUERY = 1500; // beyond it the parameters travel as a form
const LAST = 30; // what has just happened, for a page that has seen nothing yet

const spread = (ms) => ms / 2 + Math.random() * (ms / 2);

// Splits a text/event-stream that comes in pieces; `take({ event, id, data })` for each block.
// What is no block yet waits.
export function makeEventReader(take) {
  let rest = '';
  let block = { event: 'message', data: null };
  const takeLine = (line) => {
    if (line === '') {
      take(block);
      block = { event: 'message', data: null };
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (field === 'event') block.event = value;
    else if (field === 'id') block.id = value;
    else if (field === 'data') block.data = block.data === null ? value : `${block.data}\n${value}`;
  };
  return (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) takeLine(line.endsWith('\r') ? line.slice(0, -1) : line);
  };
}

class Refusal extends Error {
  constructor(status, { code, message, param } = {}, retryAfter = null) {
    super(message ?? `the server answered ${status}`);
    Object.assign(this, { status, code, param, retryMs: retryAfter ? Number(retryAfter) * 1000 : null });
  }

  // Whether the same request may be answered otherwise later.
  get mayPass() {
    return this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

export class Stream {
  // onEvent(type, event, isPast: it happened before the stream began), onNotice(type, message), onState(state, details); states: connecting,
  // live, waiting ({ ms, error, disconnect }), refused ({ error }), ended (the message).
  constructor(callbacks) {
    this.callbacks = callbacks;
    this.cursor = null;
    this.past = 0; // ids up to there are past
    this.reconnects = 0;
    this.abort = null;
  }

  // `request`: { path, parameters: URLSearchParams }. `cursor`: where to go on; null: with the newest
  // events that there are.
  start(request, token, cursor = null) {
    this.stop();
    this.cursor = cursor;
    const abort = new AbortController();
    this.abort = abort;
    this.run(request, token, abort.signal);
  }

  // Keeps the cursor.
  stop() {
    this.abort?.abort();
    this.abort = null;
  }

  // Whoever waits for the next try waits no more.
  hurry() {
    this.wake?.();
  }

  pause(ms, signal) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
      signal.addEventListener('abort', this.wake, { once: true });
    });
  }

  async run(request, token, signal) {
    const state = (name, details = {}) => { if (!signal.aborted) this.callbacks.onState(name, details); };
    let wait = 0;
    for (let first = true; !signal.aborted; first = false) {
      let disconnect = null;
      let error = null;
      if (!first) this.reconnects++;
      state('connecting');
      try {
        disconnect = await this.follow(request, token, signal, () => {
          wait = 0;
          state('live');
        });
      } catch (caught) {
        error = caught;
      }
      if (signal.aborted) return;
      if (error instanceof Refusal && !error.mayPass) return state('refused', { error });
      if (disconnect && !(disconnect.retry_ms >= 0)) return state('ended', disconnect);
      wait = Math.min(wait ? wait * 2 : WAIT_FIRST_MS, WAIT_LAST_MS);
      const ms = disconnect?.retry_ms ?? (error?.retryMs ? error.retryMs + spread(WAIT_FIRST_MS) : spread(wait));
      state('waiting', { ms, error, disconnect });
      await this.pause(ms, signal);
    }
  }

  // One connection; returns the `disconnect` message, if there was one.
  async follow({ path, parameters }, token, signal, onOpen) {
    const silence = new AbortController();
    let alarm = setTimeout(() => silence.abort(), SILENCE_MS);
    const heard = () => {
      clearTimeout(alarm);
      alarm = setTimeout(() => silence.abort(), SILENCE_MS);
    };
    const giveUp = () => silence.abort();
    signal.addEventListener('abort', giveUp);
    let disconnect = null;
    try {
      const response = await ask(path, parameters, token, this.cursor, silence.signal);
      if (!response.ok) throw await readRefusal(response);
      onOpen();
      const read = makeEventReader((block) => {
        if (block.id) this.cursor = block.id;
        if (block.data === null || signal.aborted) return;
        const message = JSON.parse(block.data);
        if (block.event === 'disconnect') disconnect = message;
        if (block.event === 'hello') this.past = parseInt(message.cursor, 10);
        if (block.event === 'disconnect' || block.event === 'gap' || block.event === 'warning') {
          if (block.event === 'gap' && message.shard === undefined) this.cursor = message.to;
          this.callbacks.onNotice(block.event, message);
        } else {
          this.callbacks.onEvent(block.event, message, parseInt(block.id, 10) <= this.past);
        }
      });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || signal.aborted) break;
        heard();
        read(value);
      }
    } finally {
      clearTimeout(alarm);
      signal.removeEventListener('abort', giveUp);
      silence.abort();
    }
    return disconnect;
  }
}

function ask(path, parameters, token, cursor, signal) {
  const headers = { Accept: 'text/event-stream', Authorization: `Bearer ${token}` };
  if (cursor) headers['Last-Event-ID'] = cursor;
  else parameters = new URLSearchParams([...parameters, ['last', LAST], ['hello', 'true']]);
  const query = parameters.toString();
  const options = { headers, signal, cache: 'no-store', credentials: 'omit' };
  if (query.length > LONGEST_QUERY) return fetch(path, { ...options, method: 'POST', body: parameters });
  return fetch(query ? `${path}?${query}` : path, options);
}

async function readRefusal(response) {
  let error;
  try {
    ({ error } = await response.json());
  } catch {
    error = undefined; // not one of ours: a proxy's, perhaps
  }
  return new Refusal(response.status, error, response.headers.get('Retry-After'));
}
