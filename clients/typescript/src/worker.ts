// The SharedWorker: new SharedWorker(url of this file, { type: 'module' }).
//
// Tabs of one user share a connection, and what they have open on it.
import { Connection, type State } from './connection.js';
import { Interrupted, reasonOf } from './errors.js';
import { Memory } from './memory.js';
import type { FromTab, ToTab } from './shared.js';

interface Topic { key: string; listeners: { tab: Tab; id: number }[]; abort: AbortController; memory: Memory }
type Join = Extract<FromTab, { op: 'join' }>;
type Open = Extract<FromTab, { op: 'open' }>;

class Group {
  readonly #tabs = new Set<Tab>();
  readonly #topics = new Map<string, Topic>();
  readonly #connection: Connection;
  #asking: { resolve: (token: string) => void; reject: (why: Error) => void } | undefined;

  constructor(readonly key: string, { url, token, options }: Join) {
    this.#connection = new Connection(url, { ...options, token: token ?? (() => this.#askToken()), onState: (state) => this.#tell(state) });
  }

  join(tab: Tab): void {
    this.#tabs.add(tab);
    tab.send({ op: 'state', client: tab.client, state: this.#connection.state });
    if (this.#asking) tab.send({ op: 'token', client: tab.client });
  }

  leave(tab: Tab): void {
    if (!this.#tabs.delete(tab)) return;
    for (const topic of this.#topics.values()) this.#drop(topic, tab);
    if (this.#tabs.size > 0) return;
    groups.delete(this.key);
    this.#connection.close();
    this.takeToken();
  }

  open(tab: Tab, { id, stream, parameters, past }: Open): void {
    const key = JSON.stringify([stream, parameters]);
    let topic = this.#topics.get(key);
    if (past) for (const message of topic?.memory.all() ?? []) tab.send({ op: 'message', id, message });
    if (!topic) {
      topic = { key, listeners: [], abort: new AbortController(), memory: new Memory(parameters) };
      this.#topics.set(key, topic);
      void this.#read(topic, stream, parameters);
    }
    topic.listeners.push({ tab, id });
    if (!tab.holds && this.#connection.state.name === 'ended') this.reconnect();
  }

  close(tab: Tab, id: number): void {
    for (const topic of this.#topics.values()) this.#drop(topic, tab, id);
  }

  reconnect(): void {
    this.#connection.reconnect();
  }

  async roundTrip(tab: Tab): Promise<void> {
    const ms = await this.#connection.roundTrip();
    tab.send({ op: 'roundTrip', client: tab.client, ms });
  }

  /** undefined: the tab has none. */
  takeToken(token?: string): void {
    if (token === undefined) this.#asking?.reject(new Interrupted('no token'));
    else this.#asking?.resolve(token);
    this.#asking = undefined;
  }

  /** Asks the tabs that came last, which are the most likely to be still there. */
  #askToken(): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#asking = { resolve, reject };
      for (const tab of [...this.#tabs].slice(-3)) tab.send({ op: 'token', client: tab.client });
    });
  }

  async #read(topic: Topic, stream: Open['stream'], parameters: Open['parameters']): Promise<void> {
    let error: ReturnType<typeof reasonOf> | undefined;
    try {
      for await (const message of this.#connection[stream](parameters, { signal: topic.abort.signal })) {
        topic.memory.take(message);
        for (const { tab, id } of topic.listeners) tab.send({ op: 'message', id, message });
      }
    } catch (why) {
      error = reasonOf(why);
    }
    this.#forget(topic);
    for (const { tab, id } of topic.listeners) tab.send({ op: 'end', id, error });
  }

  /** Without `id`, everything of a tab. */
  #drop(topic: Topic, tab: Tab, id?: number): void {
    topic.listeners = topic.listeners.filter((listener) => listener.tab !== tab || (id !== undefined && listener.id !== id));
    if (topic.listeners.length > 0) return;
    topic.abort.abort();
    this.#forget(topic);
  }

  #forget(topic: Topic): void {
    if (this.#topics.get(topic.key) === topic) this.#topics.delete(topic.key);
  }

  #tell(state: State): void {
    for (const tab of this.#tabs) tab.send({ op: 'state', client: tab.client, state });
    if (state.name !== 'ended') return;
    for (const topic of this.#topics.values()) {
      for (const { tab, id } of topic.listeners) {
        if (tab.holds) continue;
        tab.send({ op: 'end', id, error: state.error });
        this.#drop(topic, tab, id);
      }
    }
  }
}

const groups = new Map<string, Group>();

/** A client in a tab. */
class Tab {
  readonly client: number;
  readonly holds: boolean;
  readonly #group: Group;

  constructor(readonly port: MessagePort, asked: Join) {
    this.client = asked.client;
    this.holds = asked.holds;
    const key = JSON.stringify([asked.url, asked.user ?? asked.token]);
    if (!groups.has(key)) groups.set(key, new Group(key, asked));
    this.#group = groups.get(key)!;
    this.#group.join(this);
  }

  send(message: ToTab): void {
    this.port.postMessage(message);
  }

  take(asked: FromTab): void {
    if (asked.op === 'open') this.#group.open(this, asked);
    else if (asked.op === 'close') this.#group.close(this, asked.id);
    else if (asked.op === 'token') this.#group.takeToken(asked.token);
    else if (asked.op === 'reconnect') this.#group.reconnect();
    else if (asked.op === 'roundTrip') void this.#group.roundTrip(this);
    else if (asked.op === 'lock') void navigator.locks.request(asked.lock, () => this.leave());
    else if (asked.op === 'leave') this.leave();
  }

  leave(): void {
    this.#group.leave(this);
  }
}

function serve(port: MessagePort): void {
  let tab: Tab | undefined;
  port.onmessage = ({ data }: MessageEvent<FromTab>) => {
    if (data.op !== 'join') return tab?.take(data);
    tab?.leave();
    tab = new Tab(port, data);
  };
}

/** Replaces a SharedWorker in a browser without them: a connection for this page only. */
export function inPage(): { port: MessagePort } {
  const { port1, port2 } = new MessageChannel();
  serve(port1);
  return { port: port2 };
}

if ('SharedWorkerGlobalScope' in globalThis) {
  (globalThis as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [port] }) => serve(port!);
}
