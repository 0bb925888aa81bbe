// Many streams on one WebSocket, each with its own cursor: docs/streaming-api.md, "Streams on one connection". If no
// WebSocket can be opened, each stream is a response over HTTP.
import { SILENCE_MS, Silence, byFetch, isWithoutWebSocket, whyNoWebSocket, type WebSocketClass } from './transports.js';
import { Complete, Interrupted, PASSING, Refused, reasonOf, type Reason } from './errors.js';
import type { Message } from './messages.js';
import { Session, parse, type Given, type Options, type Parameters, type StreamName } from './session.js';
import { Streams, type StreamOptions } from './streams.js';
import { Tokens, type Token } from './tokens.js';
import { Queue, pause } from './waiting.js';

/** The state of a connection. `waiting`: the next attempt is in `ms`; `ended`: there is none until reconnect(). `held`:
 * without a WebSocket, how many streams wait until others end. */
export type State =
  | { name: 'idle' | 'connecting' }
  | { name: 'live'; held?: number }
  | { name: 'waiting'; ms: number; error?: Reason }
  | { name: 'ended'; error: Reason };

export interface ConnectionOptions extends Options {
  /** Like that of a Client. */
  token: Token;
  /** Default: the global WebSocket. If none can be opened, each stream is carried by `fetch`. */
  transport?: WebSocketClass;
  /** Called on each change. If given, streams survive the final end of the connection and resume after reconnect();
   * otherwise they throw its error. */
  onState?: (state: State) => void;
}

interface Channel { session: Session; queue: Queue<Given>; response?: AbortController }

const MAX_STREAMS = 16, LINGER_MS = 500, AGAIN_MS = 500;
const MAX_RESPONSES = 5; // over HTTP/1.1 a browser has six connections to a server, and a page needs one

/** The same for all who request the same, so that the server does the work once. */
function nameOf(path: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < path.length; i++) hash = Math.imul(hash ^ path.charCodeAt(i), 0x01000193) >>> 0;
  return `s${hash.toString(36)}`;
}

export class Connection extends Streams {
  state: State = { name: 'idle' };
  readonly #tokens: Tokens;
  readonly #whole: Session;
  readonly #channels = new Map<string, Channel>();
  #opening = new Map<string, number>(); // name -> how many times it was opened without an answer yet
  #socket: WebSocket | undefined; // once it is open
  #begin: ((name: string) => void) | undefined; // requests a stream, as soon as that is possible
  #trips: ((ms?: number) => void)[] = []; // whoever waits for the answer to a `list`, in order
  #refusals = 0; // in a row, of WebSockets only
  #leave: (why?: unknown) => void = () => {};
  #hurry = new AbortController();
  #isRunning = false;
  #overflow: Connection | undefined; // for more streams than one connection may have

  constructor(readonly url: string, readonly options: ConnectionOptions, tokens?: Tokens) {
    super();
    this.#tokens = tokens ?? new Tokens(options.token);
    this.#whole = new Session(url, '', {}, '', options);
  }

  close(): void {
    for (const channel of this.#channels.values()) {
      channel.queue.stop();
      this.#abort(channel);
    }
    this.#channels.clear();
    this.#stop();
    this.#overflow?.close();
  }

  /** At once, if it is waiting or has ended. */
  reconnect(): void {
    this.#hurry.abort();
    this.#overflow?.reconnect();
  }

  /** How many milliseconds the server needs to answer now; undefined: there is no WebSocket, or it ends before that. */
  roundTrip(): Promise<number | undefined> {
    if (!this.#socket) return Promise.resolve(undefined);
    const begun = performance.now();
    this.#send({ op: 'list' });
    return new Promise<number | undefined>((resolve) => this.#trips.push((now) => resolve(now && now - begun)));
  }

  protected async *open(stream: StreamName, parameters: Parameters, options: StreamOptions = {}): AsyncGenerator<Message, void> {
    if (this.#channels.size >= MAX_STREAMS) {
      this.#overflow ??= new Connection(this.url, { ...this.options, onState: this.options.onState && (() => {}) }, this.#tokens);
      return yield* this.#overflow.open(stream, parameters, options);
    }
    const session = new Session(this.url, stream, parameters, options.name, this.options), channel = { session, queue: new Queue<Given>() };
    let name = nameOf(session.path());
    while (this.#channels.has(name)) name += '.';
    this.#channels.set(name, channel);
    const stop = () => channel.queue.stop();
    options.signal?.addEventListener('abort', stop);
    if (options.signal?.aborted) stop();
    try {
      session.cursor = (await options.store?.load(session.name)) ?? undefined;
      if (this.#begin) this.#begin(name);
      else void this.#run();
      for await (const { message, cursor } of channel.queue.read()) {
        if (message) yield message;
        if (cursor !== undefined) await options.store?.save(session.name, cursor);
      }
    } finally {
      options.signal?.removeEventListener('abort', stop);
      if (this.#channels.get(name) === channel) this.#remove(name);
    }
  }

  // --- the connection ---

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (this.#channels.size > 0) {
      this.#hurry = new AbortController();
      let why: unknown;
      try {
        this.#tell({ name: 'connecting' });
        await this.#connect().catch((error) => {
          // A single time may be chance: the server has come back meanwhile.
          if (isWithoutWebSocket(error) && ++this.#refusals > 1) return this.#respond();
          throw error;
        });
      } catch (error) {
        why = error;
      }
      if (this.#channels.size === 0) break;
      try {
        if (why instanceof Interrupted && why.needsToken) this.#tokens.drop(why, undefined);
        const ms = this.#whole.retry(why);
        this.#tell({ name: 'waiting', ms, error: why instanceof Interrupted ? why.reason : reasonOf(why) });
        await pause(ms, this.#hurry.signal);
      } catch (error) {
        this.#tell({ name: 'ended', error: reasonOf(error) });
        if (!this.options.onState) for (const name of this.#channels.keys()) this.#end(name, error);
        else await pause(undefined, this.#hurry.signal);
      }
    }
    this.#isRunning = false;
    if (this.state.name !== 'ended' || this.options.onState) this.#tell({ name: 'idle' });
  }

  /** Rejects with the reason when the connection ends. */
  async #connect(): Promise<void> {
    let token = await this.#tokens.fresh();
    if (this.#channels.size === 0) return;
    const { transport: Socket = globalThis.WebSocket } = this.options;
    if (!Socket) return this.#respond();
    const socket = new Socket(`${this.#whole.base.replace(/^http/, 'ws')}/v1/stream`, ['sluice.v1', `bearer.${token}`]);
    const silence = new Silence(this.options.silenceMs ?? SILENCE_MS), { signal } = silence;
    let isOpen = false;
    const renew = async () => {
      const next = await this.#tokens.next(token);
      if (next !== undefined && this.#socket === socket) this.#send({ op: 'token', token: token = next });
    };
    try {
      await new Promise<void>((_, leave) => {
        this.#leave = leave;
        signal.addEventListener('abort', () => leave(signal.reason));
        socket.onopen = () => {
          if (signal.aborted) return;
          isOpen = true;
          this.#socket = socket;
          this.#begin = (name) => this.#ask(name);
          this.#refusals = 0;
          this.#opening = new Map();
          this.#tell({ name: 'live' });
          for (const name of this.#channels.keys()) this.#ask(name);
        };
        socket.onmessage = ({ data }) => {
          if (signal.aborted) return;
          silence.heard();
          try {
            this.#take(parse(typeof data === 'string' ? data : ''), renew);
          } catch (error) {
            leave(error);
          }
        };
        socket.onerror = () => {}; // a close follows
        socket.onclose = async ({ code }) => {
          if (!signal.aborted) leave(isOpen ? this.#whole.closed(code) : await this.#askWhy(token, signal));
        };
      });
    } finally {
      silence.end();
      for (const end of this.#trips.splice(0)) end();
      this.#socket = this.#begin = undefined;
      socket.close();
    }
  }

  /** Rejects with the reason when one of the responses ends for a reason that concerns all. */
  async #respond(): Promise<void> {
    try {
      await new Promise<void>((_, leave) => {
        this.#leave = leave;
        this.#begin = (name) => {
          this.#tellHeld();
          const all = [...this.#channels.values()], channel = this.#channels.get(name);
          if (!channel || channel.response || all.filter(({ response }) => response).length >= MAX_RESPONSES) return;
          channel.response = new AbortController();
          this.#read(name, channel, channel.response.signal).catch(leave);
        };
        for (const name of this.#channels.keys()) this.#begin(name);
      });
    } finally {
      this.#begin = undefined;
      for (const channel of this.#channels.values()) this.#abort(channel);
    }
  }

  async #read(name: string, channel: Channel, signal: AbortSignal): Promise<void> {
    try {
      for await (const given of byFetch(channel.session, this.#tokens, signal)) {
        this.#whole.heard();
        channel.queue.push(given);
      }
      throw new Interrupted('the connection has ended');
    } catch (why) {
      if (signal.aborted) return;
      this.#abort(channel);
      if (why instanceof Complete || (why instanceof Refused && why.status !== 401)) this.#end(name, why);
      else if (why instanceof Interrupted && why.reason?.status === 429) this.#askAgain(name, channel, why); // one too many
      else throw why;
    }
  }

  #abort(channel: Channel): void {
    channel.response?.abort();
    channel.response = undefined;
  }

  async #askWhy(token: string, signal: AbortSignal): Promise<Error> {
    const [first] = this.#channels;
    if (!first) return new Complete();
    const [name, { session }] = first, why = await whyNoWebSocket(session, token, signal);
    if (!(why instanceof Complete || (why instanceof Refused && [400, 413].includes(why.status)))) return why;
    this.#end(name, why); // the error concerns only this stream
    return new Interrupted('no connection');
  }

  #stop(): void {
    this.#hurry.abort();
    this.#leave(new Complete());
  }

  #tell(state: State): void {
    this.state = state;
    this.options.onState?.(state);
  }

  #tellHeld(): void {
    const { state } = this, held = Math.max(0, this.#channels.size - MAX_RESPONSES);
    if (state.name !== 'live' || (state.held ?? 0) !== held) this.#tell(held ? { name: 'live', held } : { name: 'live' });
  }

  #send(operation: object): void {
    this.#socket?.send(JSON.stringify(operation));
  }

  // --- its streams ---

  #ask(name: string): void {
    this.#opening.set(name, (this.#opening.get(name) ?? 0) + 1);
    this.#send({ op: 'open', id: name, path: this.#channels.get(name)!.session.path({ cursors: 'true' }) });
  }

  /** A stream has ended, and its connection has not: the stream resumes where it was. */
  #askAgain(name: string, { session }: Channel, why: unknown): void {
    const begin = this.#begin;
    let ms = AGAIN_MS, end: unknown;
    try {
      ms = session.retry(why);
    } catch (error) {
      end = error; // the connection reports it, too, if it is concerned
    }
    setTimeout(() => {
      if (!begin || this.#begin !== begin || this.#channels.get(name)?.session !== session) return;
      if (end) this.#end(name, end);
      else begin(name);
    }, ms);
  }

  #end(name: string, why?: unknown): void {
    this.#channels.get(name)?.queue.end(why instanceof Complete ? undefined : why);
    this.#remove(name);
  }

  #remove(name: string): void {
    const channel = this.#channels.get(name);
    this.#channels.delete(name);
    if (channel) this.#abort(channel);
    if (this.#socket) this.#send({ op: 'close', id: name });
    else for (const waiting of this.#channels.keys()) this.#begin?.(waiting);
    // Often a new stream follows at once.
    if (this.#channels.size === 0) setTimeout(() => {
      if (this.#channels.size === 0 && this.state.name !== 'ended') this.#stop();
    }, LINGER_MS);
  }

  #take(message: any, renew: () => void): void {
    if (message.op && message.op !== 'token') this.#answered(message);
    else if (message.stream === undefined) {
      for (const { expires } of this.#whole.take(message)) if (expires) renew();
    } else if (!this.#opening.get(message.stream)) { // otherwise it belongs to a closed one with the same name
      const { stream, ...own } = message;
      this.#give(stream, own);
    }
  }

  #give(name: string, message: object): void {
    const channel = this.#channels.get(name);
    if (!channel) return;
    this.#whole.heard();
    try {
      for (const given of channel.session.take(message, undefined, true)) channel.queue.push(given);
    } catch (why) {
      if (why instanceof Complete) this.#end(name);
      else this.#askAgain(name, channel, why);
    }
  }

  #answered({ op, id, error, warnings = [] }: { op: string; id: string; error?: any; warnings?: object[] }): void {
    this.#whole.heard();
    if (op === 'list') this.#trips.shift()?.(performance.now());
    if (op !== 'opened' && op !== 'open') return;
    const left = (this.#opening.get(id) ?? 1) - 1;
    this.#opening.set(id, left);
    const channel = this.#channels.get(id);
    if (left > 0 || !channel) return;
    for (const warning of warnings) this.#give(id, { type: 'warning', ...warning });
    if (!error) return;
    if (PASSING.includes(error.code)) this.#askAgain(id, channel, new Interrupted(error.code));
    else this.#end(id, new Refused(0, error.code, error.message, error.param, error.at));
  }
}
