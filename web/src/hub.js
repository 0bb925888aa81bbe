// hub.js - one connection for all tabs of the browser: a SharedWorker.
//
// Tabs ask for streams by their paths. Who asks for one that another tab has gets what it has told so far, and
// goes on with it. A token is kept as long as a tab uses it, in memory alone.
//
// From a tab: { token }, { open: path, key }, { close: key }, { hurry: true }, { lock } and { bye: true }.
// To it: { state } and { key, message }.

import { Link, readRefusal } from './link.js';
import { Memory } from './memory.js';

const MOST = 16; // streams on a connection: docs/streaming-api.md, "Streams on one connection"

// A browser does not say why a WebSocket was refused; one of its streams by itself, over HTTP, is for the same reason.
async function askWhy(path, token) {
  const abort = new AbortController();
  try {
    const response = await fetch(path, { headers: { Authorization: `Bearer ${token}` }, cache: 'no-store', credentials: 'omit', signal: abort.signal });
    return response.ok || response.status === 400 ? null : await readRefusal(response);
  } catch {
    return null;
  } finally {
    abort.abort();
  }
}

function makeLink(token, onState) {
  const url = `${location.origin.replace(/^http/, 'ws')}/v1/stream`;
  return new Link(() => new WebSocket(url, ['sluice.v1', `bearer.${token}`]), onState, (path) => askWhy(path, token));
}

// What all tabs with one token have open.
class Share {
  constructor(token) {
    this.token = token;
    this.links = [];         // as many as there are 16 streams
    this.topics = new Map(); // path -> { link, name, memory, listeners: Map of tab -> Set of keys }
    this.tabs = new Set();
    this.state = { name: 'idle' };
  }

  link() {
    const free = this.links.find((link) => link.channels.size < MOST);
    if (free) return free;
    const isFirst = this.links.length === 0;
    const link = makeLink(this.token, (state) => {
      if (!isFirst) return;
      this.state = state;
      for (const tab of this.tabs) tab.postMessage({ state });
    });
    this.links.push(link);
    return link;
  }

  open(tab, path, key) {
    let topic = this.topics.get(path);
    if (!topic) {
      topic = { link: this.link(), memory: new Memory(path), listeners: new Map() };
      this.topics.set(path, topic);
      topic.name = topic.link.open(path, (message) => this.take(topic, message));
    } else {
      for (const message of topic.memory.all()) tab.postMessage({ key, message });
    }
    if (!topic.listeners.has(tab)) topic.listeners.set(tab, new Set());
    topic.listeners.get(tab).add(key);
  }

  take(topic, message) {
    topic.memory.take(message);
    for (const [tab, keys] of topic.listeners) for (const key of keys) tab.postMessage({ key, message });
  }

  close(tab, key) {
    for (const [path, topic] of this.topics) {
      const keys = topic.listeners.get(tab);
      if (!keys?.delete(key)) continue;
      if (keys.size === 0) topic.listeners.delete(tab);
      if (topic.listeners.size > 0) continue;
      this.topics.delete(path);
      topic.link.close(topic.name);
    }
  }

  leave(tab) {
    this.tabs.delete(tab);
    const keys = [...this.topics.values()].flatMap(({ listeners }) => [...listeners.get(tab) ?? []]);
    for (const key of keys) this.close(tab, key);
  }
}

const shares = new Map(); // token -> Share

function serve(tab) {
  let share = null;
  const leave = () => {
    share?.leave(tab);
    if (share?.tabs.size === 0) shares.delete(share.token);
    share = null;
  };
  tab.onmessage = ({ data }) => {
    if ('token' in data) {
      leave();
      if (!shares.has(data.token)) shares.set(data.token, new Share(data.token));
      share = shares.get(data.token);
      share.tabs.add(tab);
      tab.postMessage({ state: share.state });
    } else if (data.open) share?.open(tab, data.open, data.key);
    else if (data.close) share?.close(tab, data.close);
    else if (data.hurry) for (const link of share?.links ?? []) link.hurry();
    else if (data.bye) leave();
    // A tab that crashes says nothing, but lets go of its lock.
    else if (data.lock) navigator.locks?.request(data.lock, leave);
  };
}

export function serveInPage() {
  const { port1, port2 } = new MessageChannel();
  serve(port1);
  return port2;
}

if (globalThis.SharedWorkerGlobalScope) globalThis.onconnect = ({ ports: [tab] }) => serve(tab);
