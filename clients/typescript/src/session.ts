// A stream without its connections: what to request, what arrives, when to reconnect. No I/O.
//
// Over HTTP, Server-Sent Events are requested: their `id:` lines are exact cursors, also while a shard is behind. On a
// WebSocket the cursor is the greatest id that arrived, or what the server sends as `cursor`.
import { Complete, Disconnected, Interrupted, Refused, SluiceError, TooManyTries } from './errors.js';
import type { Filters } from './filters.js';
import type { Message } from './messages.js';

export type StreamName = 'filter' | 'sample' | 'firehose' | 'home' | 'counts' | 'trends';
export type Parameters = Record<string, string | number | boolean | readonly (string | number)[] | undefined>;

/** The position of a stream, stored by you; `save` is called when everything before the cursor has been handled. */
export interface CursorStore {
  load(key: string): string | undefined | null | Promise<string | undefined | null>;
  save(key: string, cursor: string): void | Promise<void>;
}

export interface Options {
  /** This many connections in a row may deliver nothing; by default any number. */
  maxTries?: number;
  /** A connection that is silent for this long is dead: the server sends something every 20 s. */
  silenceMs?: number;
  /** Multiplies the pauses between connections. */
  waitScale?: number;
}

export interface Given {
  message?: Message;
  cursor?: string;
  /** The token of this connection expires soon: another one may replace it. */
  expires?: boolean;
}

const FIRST_WAIT_MS = 500, MAX_WAIT_MS = 60_000, RENEW_BEFORE_MS = 60_000, MAX_TEXT = 16 << 20;
const FINAL = ['token_revoked', 'replaced', 'ended', 'bad_message'];
const RETURNING = ['internal', 'busy', 'draining', 'too_slow'];
const FIRST_ID = 10_000_000_000_000; // numbers from here on are ids of the log

/** `exp` of a JWT in Unix milliseconds; undefined: unknown. */
export function tokenEnds(token: string): number | undefined {
  try {
    const ends = JSON.parse(atob(token.split('.')[1]!.replace(/-/g, '+').replace(/_/g, '/'))).exp;
    return typeof ends === 'number' ? ends * 1000 : undefined;
  } catch {
    return undefined;
  }
}

export function tokenIsFresh(token: string | undefined): token is string {
  return token !== undefined && (tokenEnds(token) ?? Infinity) > Date.now() + RENEW_BEFORE_MS;
}

/** Text of Server-Sent Events -> blocks. An incomplete block at the end is dropped. */
class Blocks {
  #rest = '';
  #data: string[] = [];
  #id: string | undefined;

  *feed(text: string): Generator<{ data?: string; id?: string }> {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop()!;
    if (this.#rest.length > MAX_TEXT) throw new Interrupted('a line without an end');
    for (const line of lines) {
      const block = this.#line(line.endsWith('\r') ? line.slice(0, -1) : line);
      if (block) yield block;
    }
  }

  #line(line: string): { data?: string; id?: string } | undefined {
    if (line === '') {
      const block = { data: this.#data.length > 0 ? this.#data.join('\n') : undefined, id: this.#id };
      this.#data = [];
      this.#id = undefined;
      return block.data === undefined && block.id === undefined ? undefined : block;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.#data.push(value);
    else if (name === 'id') this.#id = value;
    return undefined;
  }
}

export function parse(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    throw new Interrupted('a message that is no JSON');
  }
}

export class Session {
  cursor: string | undefined;
  #parameters: [string, string][];
  #blocks = new Blocks();
  #decoder = new TextDecoder();
  #came = false;
  #tries = 0;
  readonly name: string;

  constructor(readonly base: string, readonly stream: StreamName | '', parameters: Parameters, name: string | undefined,
    readonly options: Options, readonly filters?: Filters) {
    this.base = base.replace(/\/+$/, '');
    this.#parameters = Object.entries(parameters)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key, Array.isArray(value) ? value.join(',') : String(value)]);
    this.name = name ?? `${this.#place}?${new URLSearchParams(this.#parameters)}`;
  }

  get #place(): string {
    return `/v1/stream${this.stream && '/'}${this.stream}`;
  }

  /** With its parameters and position. `more`: further parameters. */
  path(more: Record<string, string> = {}): string {
    const query = new URLSearchParams(this.#parameters);
    for (const [name, value] of Object.entries(more)) query.set(name, value);
    if (this.cursor !== undefined) {
      query.set('since', this.cursor);
      query.delete('last');
    }
    const text = query.toString();
    return `${this.#place}${text && '?'}${text}`;
  }

  url(more?: Record<string, string>): string {
    return this.base + this.path(more);
  }

  /** A stream over HTTP that the server refuses for the same reason as this one. */
  probe(): string {
    if (!this.filters?.first) return this.url();
    return new Session(this.base, 'filter', this.filters.first, '', this.options).url();
  }

  /** The meaning of a refusal. */
  refused(status: number, retryAfter: string | null, body: string): Error {
    if (status === 204) return new Complete();
    let code = 'unknown', reason = `the server answered ${status}`, param: string | undefined, at: number | undefined;
    try {
      ({ code, message: reason, param, at } = JSON.parse(body).error);
    } catch {
      // from a proxy
    }
    const said = { status, code, reason };
    if (status === 401 && (code === 'token_expired' || code === 'no_token'))
      return new Interrupted(`${status} ${code}`, undefined, true, said);
    if ([408, 425, 429].includes(status) || status >= 500)
      return new Interrupted(`${status} ${code}: ${reason}`, retryAfter && /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : undefined, false, said);
    return new Refused(status, code, reason, param, at);
  }

  opened(contentType: string | null): void {
    this.begun();
    if (!contentType?.startsWith('text/event-stream'))
      throw new Interrupted(`an answer of ${contentType ?? 'no type'}: something else than sluiced gave it`);
  }

  begun(): void {
    this.#blocks = new Blocks();
    this.#decoder = new TextDecoder();
    this.#came = false;
  }

  /** Something has arrived: this attempt counts as successful. */
  heard(): void {
    this.#came = true;
  }

  /** Yields the messages in the next piece of the body. Throws an error that ends the connection, or the stream. */
  *feed(piece: Uint8Array): Generator<Given> {
    for (const { data, id } of this.#blocks.feed(this.#decoder.decode(piece, { stream: true }))) {
      this.#came = true;
      if (data === undefined) yield this.#give(undefined, id);
      else yield* this.take(parse(data), id);
    }
  }

  /** One message of a WebSocket. */
  *feedMessage(text: string): Generator<Given> {
    yield* this.take(parse(text), undefined, true);
  }

  #give(message: Message | undefined, cursor: string | undefined): Given {
    this.cursor = cursor ?? this.cursor;
    return { message, cursor };
  }

  #cursorOf(message: any): string | undefined {
    if (typeof message.cursor === 'string') return message.cursor;
    const place = message.type === 'gap' && message.shard === undefined ? message.to : message.id;
    const id = Number(place);
    if (!(id >= FIRST_ID) || message.partial) return undefined;
    return this.cursor !== undefined && !this.cursor.includes('~') && Number(this.cursor) > id ? undefined : place;
  }

  /** `byIds`: no cursor comes with it. Throws like feed(). */
  *take(message: any, cursor?: string, byIds = false): Generator<Given> {
    this.#came = true;
    if (message.op) {
      if (this.filters?.answered(message)) return;
      if (message.error) throw new Interrupted(`the new token was refused: ${message.error.code}`, 0);
      return;
    }
    if (message.type === 'disconnect') {
      yield this.#give(undefined, message.cursor);
      throw this.#disconnect(message);
    }
    if (message.type === 'warning' && message.code === 'token_expiring') yield { expires: true };
    else if (message.type === 'cursor') yield this.#give(undefined, message.id);
    else if (message.type !== 'hello') yield this.#give(message, byIds ? this.#cursorOf(message) : cursor);
  }

  #disconnect({ code, reason, retry_ms }: { code: string; reason: string; retry_ms?: number }): Error {
    if (code === 'complete') return new Complete();
    const said = { code, reason };
    if (code === 'token_expired') return new Interrupted(code, 0, true, said);
    if (FINAL.includes(code) || (retry_ms === undefined && !RETURNING.includes(code))) return new Disconnected(code, reason, this.cursor);
    return new Interrupted(code, retry_ms, false, said);
  }

  /** A WebSocket was closed without a `disconnect`. A code that is not sluiced's own may be a proxy's: then it
   * reconnects. */
  closed(code: number | undefined): Error {
    if (code === 4001) return new Interrupted('token_expired', 0, true);
    const final = code === 4003 ? 'replaced' : code === 4004 ? 'ended' : undefined;
    return final ? new Disconnected(final, `closed with ${code}`, this.cursor) : new Interrupted(`closed with ${code}`);
  }

  /** Returns how many milliseconds to wait. Throws an error that ends the stream. */
  retry(why: unknown): number {
    if (why instanceof SluiceError || why instanceof Complete) throw why;
    if (this.#came) this.#tries = 0;
    this.#came = false;
    this.#tries++;
    if (this.options.maxTries !== undefined && this.#tries > this.options.maxTries) throw new TooManyTries(this.#tries, why);
    const scale = this.options.waitScale ?? 1;
    const wait = why instanceof Interrupted ? why.waitMs : undefined;
    if (wait !== undefined && (wait > 0 || this.#tries === 1)) return wait * scale;
    const longest = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(this.#tries, 10));
    return longest * (0.5 + Math.random() / 2) * scale;
  }
}
