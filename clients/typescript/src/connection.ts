// Many streams on one WebSocket, each with a cursor of its own: docs/streaming-api.md, "Streams on one connection".
import { SILENCE_MS, type WebSocketClass } from './connections.js';
import { Complete, Interrupted, Refused, type Reason } from './errors.js';
import type { Message } from './messages.js';
import { Session, parse, type Given, type Options, type Parameters, type StreamName } from './session.js';
import { Streams, type StreamOptions } from './streams.js';
import { Tokens, type Token } from './tokens.js';
import { Queue, pause } from './waiting.js';

/** How a connection fares. `waiting`: the next try is in `ms`; `ended`: there is none until reconnect(). */
export type State =
  | { name: 'idle' | 'connecting' | 'live' }
  | { name: 'waiting'; ms: number; error?: Reason }
  | { name: 'ended'; error: Reason };

export interface ConnectionOptions extends Options {
  /** As that of a Client. */
  token: Token;
  /** Unless given, the one that is there. */
  transport?: WebSocketClass;
  /** Is told each change. With it streams outlive what ends the connection for good, and go on with reconnect(); without
   * it they throw that. */
  onState?: (state: State) => void;
}

interface Channel { session: Session; queue: Queue<Given> }

const MAX_STREAMS = 16, LINGER_MS = 500, AGAIN_MS = 500;
const PASSING = ['busy', 'draining', 'no_memory', 'quota', 'rate_limited', 'redis_away', 'timeout']; // of streams that are opened

const NO_WEBSOCKET: Reason = { code: 'no_websocket', reason: 'the server answers, but a WebSocket to it cannot be opened' }; // by a proxy

/** The same for everybody who asks the same, so that the server does the work once. */
function nameOf(path: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < path.length; i++) hash = Math.imul(hash ^ path.charCodeAt(i), 0x01000193) >>> 0;
  return `s${hash.toString(36)}`;
}

/** An error without what cannot be sent from a worker to a tab. */
export function reasonOf(why: unknown): Reason {
  const { code, reason = String(why), status, param, at, cursor } = why as Partial<Reason>;
  return { code, reason, status, param, at, cursor };
}

export class Connection extends Streams {
  state: State = { name: 'idle' };
  readonly #tokens: Tokens;
  readonly #whole: Session;
  readonly #channels = new Map<string, Channel>();
  #opening = new Map<string, number>(); // name -> how often it was opened without an answer until now
  #socket: WebSocket | undefined; // once it is open
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
    for (const { queue } of this.#channels.values()) queue.stop();
    this.#channels.clear();
    this.#stop();
    this.#overflow?.close();
  }

  /** At once, if it waits or has ended. */
  reconnect(): void {
    this.#hurry.abort();
    this.#overflow?.reconnect();
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
      if (this.#socket) this.#ask(name);
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
        await this.#connect();
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

  /** Rejects when it is over, with why. */
  async #connect(): Promise<void> {
    let token = await this.#tokens.fresh();
    if (this.#channels.size === 0) return;
    const { transport: Socket = WebSocket, silenceMs = SILENCE_MS } = this.options;
    const socket = new Socket(`${this.#whole.base.replace(/^http/, 'ws')}/v1/stream`, ['sluice.v1', `bearer.${token}`]);
    const abort = new AbortController();
    let isOpen = false, timer: ReturnType<typeof setTimeout> | undefined;
    const renew = async () => {
      const next = await this.#tokens.next(token);
      if (next !== undefined && this.#socket === socket) this.#send({ op: 'token', token: token = next });
    };
    try {
      await new Promise<void>((_, leave) => {
        const heard = () => {
          clearTimeout(timer);
          timer = setTimeout(() => leave(new Interrupted('silence')), silenceMs);
        };
        this.#leave = leave;
        heard();
        socket.onopen = () => {
          if (abort.signal.aborted) return;
          isOpen = true;
          this.#socket = socket;
          this.#opening = new Map();
          this.#tell({ name: 'live' });
          for (const name of this.#channels.keys()) this.#ask(name);
        };
        socket.onmessage = ({ data }) => {
          if (abort.signal.aborted) return;
          heard();
          try {
            this.#take(parse(typeof data === 'string' ? data : ''), renew);
          } catch (error) {
            leave(error);
          }
        };
        socket.onerror = () => {}; // a close follows
        socket.onclose = async ({ code }) => {
          if (!abort.signal.aborted) leave(isOpen ? this.#whole.closed(code) : await this.#askWhy(token, abort.signal));
        };
      });
    } finally {
      clearTimeout(timer);
      this.#socket = undefined;
      abort.abort();
      socket.close();
    }
  }

  /** A browser does not say why an upgrade was refused: one of the streams, over HTTP, is for the same reason. */
  async #askWhy(token: string, signal: AbortSignal): Promise<Error> {
    const [first] = this.#channels;
    if (!first) return new Complete();
    const [name, { session }] = first, body = new AbortController();
    try {
      signal.addEventListener('abort', () => body.abort());
      const answer = await fetch(session.url(), { headers: { Authorization: `Bearer ${token}` }, signal: body.signal, cache: 'no-store' });
      if (answer.status === 200) return new Interrupted('no WebSocket', undefined, false, NO_WEBSOCKET);
      const why = this.#whole.refused(answer.status, answer.headers.get('retry-after'), await answer.text());
      if (!(why instanceof Complete || (why instanceof Refused && [400, 413].includes(why.status)))) return why;
      this.#end(name, why); // which is of this stream alone
    } catch {
      // nobody is there
    } finally {
      body.abort();
    }
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

  #send(operation: object): void {
    this.#socket?.send(JSON.stringify(operation));
  }

  // --- its streams ---

  #ask(name: string): void {
    this.#opening.set(name, (this.#opening.get(name) ?? 0) + 1);
    this.#send({ op: 'open', id: name, path: this.#channels.get(name)!.session.path({ cursors: 'true' }) });
  }

  /** A stream is over, and its connection is not: it goes on where it was. */
  #askAgain(name: string, { session }: Channel, why: unknown): void {
    const socket = this.#socket;
    let ms = AGAIN_MS, end: unknown;
    try {
      ms = session.retry(why);
    } catch (error) {
      end = error; // which its connection says, too, if it is about that
    }
    setTimeout(() => {
      if (!socket || this.#socket !== socket || this.#channels.get(name)?.session !== session) return;
      if (end) this.#end(name, end);
      else this.#ask(name);
    }, ms);
  }

  #end(name: string, why?: unknown): void {
    this.#channels.get(name)?.queue.end(why instanceof Complete ? undefined : why);
    this.#remove(name);
  }

  #remove(name: string): void {
    this.#channels.delete(name);
    this.#send({ op: 'close', id: name });
    // Often another comes in the place of the last one.
    if (this.#channels.size === 0) setTimeout(() => {
      if (this.#channels.size === 0 && this.state.name !== 'ended') this.#stop();
    }, LINGER_MS);
  }

  #take(message: any, renew: () => void): void {
    if (message.op) this.#answered(message);
    else if (message.stream === undefined) {
      for (const { expires } of this.#whole.take(message)) if (expires) renew();
    } else if (!this.#opening.get(message.stream)) { // else it is of one that was closed, under the same name
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

  #answered({ op, id, error }: { op: string; id: string; error?: any }): void {
    this.#whole.heard();
    if (op === 'token' && error) throw new Interrupted(`the new token was refused: ${error.code}`, 0);
    if (op !== 'opened' && op !== 'open') return;
    const left = (this.#opening.get(id) ?? 1) - 1;
    this.#opening.set(id, left);
    const channel = this.#channels.get(id);
    if (left > 0 || !error || !channel) return;
    if (PASSING.includes(error.code)) this.#askAgain(id, channel, new Interrupted(error.code));
    else this.#end(id, new Refused(0, error.code, error.message, error.param, error.at));
  }
}
