import { byFetch, byWebSocket, type WebSocketClass } from './transports.js';
import { Complete, Interrupted } from './errors.js';
import { Filters, FilterStream } from './filters.js';
import type { Message } from './messages.js';
import { Session, type Given, type Options, type Parameters, type StreamName } from './session.js';
import { Streams, type StreamOptions } from './streams.js';
import { Tokens, type Token } from './tokens.js';
import { eager, pause } from './waiting.js';

export interface ClientOptions extends Options {
  /** A JWT, or a function that returns a new one, called when one is needed and before the old one expires. */
  token: Token;
  /** What carries streams: `fetch`, whose cursors are always exact (the default), or a WebSocket class. */
  transport?: 'fetch' | WebSocketClass;
}

const REMEMBERED = 100_000;

export class Client extends Streams {
  readonly #urls: string[];
  readonly #options: ClientOptions;
  readonly #abort = new AbortController();
  readonly #tokens: Tokens;

  /** `url`: of the server; with two or more, all are read, and each event is passed on once. */
  constructor(url: string | string[], options: ClientOptions) {
    super();
    this.#urls = typeof url === 'string' ? [url] : url;
    this.#options = options;
    this.#tokens = new Tokens(options.token);
  }

  close(): void {
    this.#abort.abort();
  }

  /** What matches any of these filters, which you name; an event says which ones. Needs a WebSocket. */
  filters(filters: Record<string, Parameters>, parameters: Parameters = {}, options?: StreamOptions): FilterStream {
    const servers = this.#urls.map(() => new Filters(filters));
    return new FilterStream(servers, this.open('', parameters, options, servers));
  }

  protected async *open(stream: StreamName | '', parameters: Parameters, options: StreamOptions = {}, filters: Filters[] = []):
    AsyncGenerator<Message, void> {
    const own = new AbortController(), end = (why?: unknown) => filters.forEach((each) => each.end(why));
    const signals = [this.#abort.signal, ...(options.signal ? [options.signal] : [])];
    const stop = () => own.abort();
    for (const signal of signals) {
      if (signal.aborted) stop();
      signal.addEventListener('abort', stop, { signal: own.signal });
    }
    try {
      const sessions = await Promise.all(this.#urls.map(async (url, i) => {
        const name = this.#urls.length > 1 ? `${options.name ?? stream}@${url}` : options.name;
        const session = new Session(url, stream, parameters, name, this.#options, filters[i]);
        session.cursor = (await options.store?.load(session.name)) ?? undefined;
        return session;
      }));
      const all = sessions.length === 1 ? this.#tagged(sessions[0]!, own.signal) : this.#merge(sessions, own.signal);
      // Changing a filter waits for the answer, which may come on the next connection.
      for await (const { session, given } of filters.length > 0 ? eager(all, end) : all) {
        if (given.message) yield given.message;
        if (given.cursor !== undefined) await options.store?.save(session.name, given.cursor);
      }
    } finally {
      own.abort();
      end();
    }
  }

  async *#tagged(session: Session, signal: AbortSignal) {
    for await (const given of this.#given(session, signal)) yield { session, given };
  }

  async *#given(session: Session, signal: AbortSignal): AsyncGenerator<Given> {
    const { transport = 'fetch' } = this.#options, Socket = transport === 'fetch' ? session.filters && WebSocket : transport;
    while (!signal.aborted) {
      let why: unknown = new Interrupted('the connection has ended');
      try {
        yield* Socket ? byWebSocket(session, this.#tokens, signal, Socket) : byFetch(session, this.#tokens, signal);
      } catch (error) {
        why = error;
      }
      if (signal.aborted || why instanceof Complete) return;
      if (why instanceof Interrupted && why.needsToken) this.#tokens.drop(why, session.cursor);
      await pause(session.retry(why), signal);
    }
  }

  /** When one ends, the others continue; the error of the last one is thrown. */
  async *#merge(sessions: Session[], signal: AbortSignal) {
    const seen = new Set<string>();
    const sources = new Map(sessions.map((session) => [session, this.#given(session, signal)]));
    const next = (session: Session) => sources.get(session)!.next().then(
      (result) => ({ session, result, error: undefined }), (error: unknown) => ({ session, result: undefined, error }));
    const waiting = new Map(sessions.map((session) => [session, next(session)]));
    let last: unknown;
    while (waiting.size > 0) {
      const { session, result, error } = await Promise.race(waiting.values());
      if (!result || result.done) {
        last = error ?? last;
        waiting.delete(session);
        continue;
      }
      waiting.set(session, next(session));
      const given = result.value;
      yield isNew(seen, given.message) ? { session, given } : { session, given: { cursor: given.cursor } };
    }
    if (last !== undefined) throw last;
  }
}

function isNew(seen: Set<string>, message: any): boolean {
  if (message?.id === undefined) return true;
  const key = `${message.type} ${message.id} ${message.revision ?? ''}`;
  if (seen.has(key)) return false;
  seen.add(key);
  if (seen.size > REMEMBERED) seen.delete(seen.values().next().value!);
  return true;
}
