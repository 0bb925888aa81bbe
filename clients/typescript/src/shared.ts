// One connection for all tabs of a browser: a SharedWorker (worker.ts) has the streams, the tabs receive them.
import type { State } from './connection.js';
import { errorOf, type Reason } from './errors.js';
import type { Message } from './messages.js';
import type { Options, Parameters, StreamName } from './session.js';
import { Streams } from './streams.js';
import type { Token } from './tokens.js';
import { Queue } from './waiting.js';

export interface SharedOptions extends Options {
  /** Tabs with the same user share a connection and its token. Default: the token, if it is a string. */
  user?: string;
  /** Like that of a Connection. */
  onState?: (state: State) => void;
}

export interface SharedStreamOptions {
  signal?: AbortSignal;
  /** First delivers what other tabs have received from the same stream: counts as far back as `since` reaches, the last
   * 60 events, the newest trends. */
  past?: boolean;
}

export type FromTab =
  | { op: 'join'; client: number; url: string; user?: string; token?: string; holds: boolean; options: Options }
  | { op: 'open'; id: number; stream: StreamName; parameters: Parameters; past?: boolean }
  | { op: 'close'; id: number }
  | { op: 'token'; token?: string }
  | { op: 'lock'; lock: string }
  | { op: 'reconnect' | 'roundTrip' | 'leave' };
export type ToTab =
  | { op: 'state'; client: number; state: State }
  | { op: 'token'; client: number }
  | { op: 'roundTrip'; client: number; ms?: number }
  | { op: 'message'; id: number; message: Message }
  | { op: 'end'; id: number; error?: Reason };

let clients = 0, streams = 0; // numbers that are not used twice

/** Like Client, with the same streams, in a tab. `worker`: made from the file `sluice-stream/worker`, the same URL in
 * all tabs; or its inPage(). Tabs that request the same share it; a stream ends with its last tab. */
export class SharedClient extends Streams<SharedStreamOptions> {
  state: State = { name: 'idle' };
  readonly #number = ++clients;
  readonly #port: MessagePort;
  readonly #queues = new Map<number, Queue<Message>>();
  #hasJoined = false;
  #trips: ((ms?: number) => void)[] = [];
  #unlock = () => {};
  // A tab that is closed reports it; one that returns from the back/forward cache opens its streams again.
  readonly #hide = () => this.close();

  constructor(readonly url: string, worker: { port: MessagePort }, readonly token: Token, readonly options: SharedOptions = {}) {
    super();
    this.#port = worker.port;
    this.#port.onmessage = ({ data }: MessageEvent<ToTab>) => void this.#take(data);
  }

  close(): void {
    if (!this.#hasJoined) return;
    this.#hasJoined = false;
    globalThis.removeEventListener?.('pagehide', this.#hide);
    this.#send({ op: 'leave' });
    this.#unlock();
    for (const end of this.#trips.splice(0)) end();
    for (const queue of this.#queues.values()) queue.stop();
  }

  /** At once, if it is waiting or has ended. */
  reconnect(): void {
    this.#send({ op: 'reconnect' });
  }

  /** Like that of a Connection. */
  roundTrip(): Promise<number | undefined> {
    if (!this.#hasJoined) return Promise.resolve(undefined);
    this.#send({ op: 'roundTrip' });
    return new Promise((resolve) => this.#trips.push(resolve));
  }

  #send(message: FromTab): void {
    this.#port.postMessage(message);
  }

  #join(): void {
    if (this.#hasJoined) return;
    this.#hasJoined = true;
    globalThis.addEventListener?.('pagehide', this.#hide);
    const { url, token, options: { user, onState, ...options } } = this;
    this.#send({ op: 'join', client: this.#number, url, user, token: typeof token === 'string' ? token : undefined,
      holds: onState !== undefined, options });
    // A tab that crashes sends nothing, but releases its lock.
    const lock = `sluice ${crypto.getRandomValues(new Uint32Array(4)).join()}`;
    void globalThis.navigator?.locks?.request(lock, () => {
      if (this.#hasJoined) this.#send({ op: 'lock', lock });
      return new Promise<void>((resolve) => (this.#unlock = resolve));
    });
  }

  async #take(told: ToTab): Promise<void> {
    if (told.op === 'message') this.#queues.get(told.id)?.push(told.message);
    else if (told.op === 'end') this.#queues.get(told.id)?.end(told.error && errorOf(told.error));
    else if (told.client !== this.#number) return; // of an earlier one
    else if (told.op === 'roundTrip') this.#trips.shift()?.(told.ms);
    else if (told.op === 'token') {
      const { token } = this, ask = async () => (typeof token === 'string' ? token : token());
      this.#send({ op: 'token', token: await ask().catch(() => undefined) });
    } else {
      this.state = told.state;
      this.options.onState?.(told.state);
    }
  }

  protected async *open(stream: StreamName, parameters: Parameters, { signal, past }: SharedStreamOptions = {}): AsyncGenerator<Message, void> {
    if (signal?.aborted) return;
    const id = ++streams, queue = new Queue<Message>(), stop = () => queue.stop();
    this.#queues.set(id, queue);
    signal?.addEventListener('abort', stop);
    this.#join();
    this.#send({ op: 'open', id, stream, parameters, past });
    try {
      yield* queue.read();
    } finally {
      signal?.removeEventListener('abort', stop);
      this.#queues.delete(id);
      if (this.#hasJoined) this.#send({ op: 'close', id });
    }
  }
}
