// link.js - one connection for everything that a page shows.
//
// Streams are opened inside of it, each by its path and under a name. Each has a cursor of its own: after
// a connection that broke, each goes on where it was. The next try comes after a random wait that doubles
// up to half a minute, or when the `disconnect` message says.

import { continuePath } from './question.js';

const WAIT_FIRST_MS = 500;
const WAIT_LAST_MS = 30_000;
const SILENCE_MS = 45_000;
const SMALLEST_CURSOR = 1e13; // a smaller id is one that its producer gave: docs/streaming-api.md, "Where it begins"

const spread = (ms) => ms / 2 + Math.random() * (ms / 2);

// The same for everybody who asks the same, so that the server does the work once.
function nameOf(path) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < path.length; i++) hash = Math.imul(hash ^ path.charCodeAt(i), 0x01000193) >>> 0;
  return `s${hash.toString(36)}`;
}

function cursorOf(message) {
  const id = message.type === 'gap' && message.shard === undefined ? message.to : (message.cursor ?? message.id);
  return parseInt(id, 10) >= SMALLEST_CURSOR ? id : null;
}

export class Link {
  // connect() gives a new socket; askWhy(path) what is wrong when it does not open, or null. onState(state): { name, ms, error }, of which name is connecting, live,
  // waiting (ms until the next try) or refused: error says why, and hurry() alone makes it try again.
  constructor(connect, onState, askWhy = async () => null) {
    Object.assign(this, { connect, onState, askWhy });
    this.channels = new Map(); // name -> { path, cursor, take }
    this.socket = null;
    this.isOpen = false;
    this.wait = 0;
    this.state = { name: 'idle' };
  }

  // take(message): all that comes of it, and { type: 'refused', error } if it cannot be had.
  open(path, take) {
    const name = nameOf(path);
    const channel = { path, cursor: null, take };
    this.channels.set(name, channel);
    if (this.isOpen) this.say({ op: 'open', id: name, path });
    else if (!this.socket && !this.timer && this.state.name !== 'refused') this.dial();
    return name;
  }

  close(name) {
    if (!this.channels.delete(name)) return;
    if (this.isOpen) this.say({ op: 'close', id: name });
    if (this.channels.size === 0) this.stop();
  }

  stop() {
    clearTimeout(this.timer);
    clearTimeout(this.alarm);
    this.timer = null;
    const { socket } = this;
    this.socket = null;
    this.isOpen = false;
    socket?.close();
    if (this.state.name !== 'refused') this.tell({ name: 'idle' });
  }

  // Whoever waits for the next try, or was refused, tries at once.
  hurry() {
    if (!this.timer && this.state.name !== 'refused') return;
    clearTimeout(this.timer);
    this.timer = null;
    this.dial();
  }

  tell(state) {
    this.state = state;
    this.onState(state);
  }

  say(message) {
    this.socket.send(JSON.stringify(message));
  }

  dial() {
    this.tell({ name: 'connecting' });
    const socket = this.connect();
    this.socket = socket;
    this.ending = null;
    const isCurrent = () => this.socket === socket;
    socket.onopen = () => {
      if (!isCurrent()) return;
      this.isOpen = true;
      this.heard();
      this.tell({ name: 'live' });
      for (const [id, { path, cursor }] of this.channels) this.say({ op: 'open', id, path: continuePath(path, cursor) });
    };
    socket.onmessage = ({ data }) => { if (isCurrent()) this.take(JSON.parse(data)); };
    socket.onclose = async () => {
      const error = this.isOpen || !isCurrent() ? null : await this.askWhy([...this.channels.values()][0]?.path);
      if (isCurrent()) this.lost(error);
    };
  }

  heard() {
    clearTimeout(this.alarm);
    this.alarm = setTimeout(() => this.lost(), SILENCE_MS);
  }

  take(message) {
    this.heard();
    this.wait = 0;
    const channel = this.channels.get(message.stream ?? message.id);
    if (message.op) {
      if (message.error) channel?.take({ type: 'refused', error: message.error });
    } else if (!message.stream) {
      if (message.type === 'disconnect') this.ending = message;
    } else if (channel) {
      const cursor = cursorOf(message);
      if (cursor) channel.cursor = cursor;
      if (message.type === 'disconnect' && message.code !== 'complete') this.reopen(message.stream, channel);
      else channel.take(message);
    }
  }

  // A stream that was too slow goes on where it was; one that ends with its connection waits for the next.
  reopen(id, channel) {
    setTimeout(() => {
      if (this.isOpen && this.channels.get(id) === channel) this.say({ op: 'open', id, path: continuePath(channel.path, channel.cursor) });
    }, WAIT_FIRST_MS);
  }

  lost(error) {
    clearTimeout(this.alarm);
    const { socket, ending } = this;
    this.socket = null;
    this.isOpen = false;
    socket.onclose = null;
    socket.close();
    error ??= ending && { code: ending.code, message: ending.reason, retryMs: ending.retry_ms,
      mayPass: ending.retry_ms >= 0 && ending.code !== 'token_expired' }; // which nothing but another token helps against
    if (error && !error.mayPass) return this.tell({ name: 'refused', error });
    this.wait = Math.min(this.wait ? this.wait * 2 : WAIT_FIRST_MS, WAIT_LAST_MS);
    const ms = error?.retryMs ?? spread(this.wait);
    this.timer = setTimeout(() => this.hurry(), ms);
    this.tell({ name: 'waiting', ms, error });
  }
}

// What a refused answer says: { status, code, message, param, at, mayPass, retryMs }.
export async function readRefusal(response) {
  let error = {};
  try {
    ({ error } = await response.json());
  } catch {
    // not one of ours: a proxy's, perhaps
  }
  const { status } = response;
  const retryAfter = Number(response.headers.get('Retry-After'));
  return { message: `the server answered ${status}`, ...error, status,
    mayPass: status === 408 || status === 429 || status >= 500,
    retryMs: retryAfter > 0 ? retryAfter * 1000 : undefined };
}
