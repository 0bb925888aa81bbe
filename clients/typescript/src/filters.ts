// Named filters on one connection: docs/streaming-api.md, "Many filters over one connection".
import { Interrupted, PASSING, Refused, SluiceError } from './errors.js';
import type { Message } from './messages.js';
import type { Parameters } from './session.js';

/** An event names the filters that it matches. */
export type Matched = Message & { matching_rules?: { id: string; tag?: string }[] };

/** The filter may not be what was meant. */
export interface FilterWarning { code: string; message: string; param?: string; at?: number }

interface Change {
  op: 'subscribe' | 'unsubscribe';
  id: string;
  before: Parameters | undefined; // the filter that had this name before
  isOpening?: boolean; // one of those with which a connection begins
  resolve(warnings: FilterWarning[]): void;
  reject(why: unknown): void;
}

/** What one server was asked for, and what it has answered. Not for users. */
export class Filters {
  readonly #wanted: Map<string, Parameters>;
  #changes: Change[] = []; // not answered yet
  #send: ((operation: object) => void) | undefined;
  #over: unknown; // why there are no more answers

  constructor(filters: Record<string, Parameters>) {
    this.#wanted = new Map(Object.entries(filters));
  }

  get first(): Parameters | undefined {
    return this.#wanted.values().next().value;
  }

  change(op: Change['op'], id: string, filter?: Parameters): Promise<FilterWarning[]> {
    return new Promise((resolve, reject) => {
      if (this.#over) return reject(this.#over);
      const before = this.#wanted.get(id);
      this.#wanted.delete(id); // a new filter comes after all others
      if (filter) this.#wanted.set(id, filter);
      this.#changes.push({ op, id, before, resolve, reject });
      this.#say(op, id);
    });
  }

  /** A connection is open: sends all filters, and requests missed events only with the last. */
  opened(send: (operation: object) => void): void {
    this.#send = send;
    this.#changes = this.#changes.filter((change, i) => {
      change.isOpening = change.op === 'subscribe' && !this.#changes.slice(i + 1).some(({ id }) => id === change.id);
      if (!change.isOpening) change.resolve([]);
      return change.isOpening;
    });
    const ids = [...this.#wanted.keys()];
    for (const id of ids) this.#say('subscribe', id, id === ids.at(-1) ? undefined : true);
  }

  closed(): void {
    this.#send = undefined;
  }

  end(why: unknown = new SluiceError('the stream has ended')): void {
    this.#over ??= why;
    for (const { reject } of this.#changes.splice(0)) reject(this.#over);
  }

  /** Whether the message is an answer. Throws an error that ends the connection, or the stream. */
  answered({ op, id, warnings, error }: any): boolean {
    const i = this.#changes.findIndex((change) => change.id === id && op.startsWith(change.op)), change = this.#changes[i];
    if (!change && !/^(un)?subscribe/.test(op)) return false;
    if (error && PASSING.includes(error.code)) throw new Interrupted(error.code);
    if (change) this.#changes.splice(i, 1);
    if (!error) change?.resolve(warnings ?? []);
    else {
      const why = new Refused(0, error.code, error.message, error.param, error.at);
      if (!change) throw why; // there is no caller to tell
      if (change.before) this.#wanted.set(id, change.before);
      else this.#wanted.delete(id);
      change.reject(why);
      if (change.isOpening) throw new Interrupted(error.code, 0); // the previous one is still wanted; `more` was promised
    }
    return true;
  }

  #say(op: Change['op'], id: string, more?: true): void {
    const filter = Object.entries(this.#wanted.get(id) ?? {}).filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key, typeof value === 'boolean' ? value : String(value)]); // a list is joined with commas
    this.#send?.({ op, id, ...(op === 'subscribe' && { filter: Object.fromEntries(filter), more }) });
  }
}

/** What matches any of its filters. They may be changed while it is read; each change takes effect between two
 * events. */
export class FilterStream implements AsyncIterable<Matched> {
  readonly #servers: Filters[];
  readonly #events: AsyncGenerator<Matched, void>;

  constructor(servers: Filters[], events: AsyncGenerator<Matched, void>) {
    this.#servers = servers;
    this.#events = events;
  }

  [Symbol.asyncIterator](): AsyncGenerator<Matched, void> {
    return this.#events;
  }

  /** Adds a filter, or replaces the one with this name; no event is missed, and none comes twice. Resolves when the
   * server has accepted it; if it rejects with `Refused`, nothing has changed. */
  subscribe(name: string, filter: Parameters): Promise<FilterWarning[]> {
    return this.#change('subscribe', name, filter);
  }

  async unsubscribe(name: string): Promise<void> {
    await this.#change('unsubscribe', name);
  }

  /** The first server that answers counts: another one may be unavailable. */
  #change(op: Change['op'], name: string, filter?: Parameters): Promise<FilterWarning[]> {
    return Promise.race(this.#servers.map((server) => server.change(op, name, filter)));
  }
}
