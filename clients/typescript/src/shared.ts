// One connection for all tabs of a browser: a SharedWorker (worker.ts) has the streams, the tabs listen.
import { Disconnected, Refused, SluiceError } from './errors.js';
import type { Message } from './messages.js';
import type { Parameters, StreamName } from './session.js';
import type { Token } from './tokens.js';

export interface FromTab { op: 'open' | 'close' | 'token'; id?: number; url?: string; stream?: StreamName; parameters?: Parameters; token?: string }
export interface ToTab { op: 'message' | 'end' | 'token'; id?: number; message?: Message; error?: { name: string; args: unknown[] } }

const ERRORS: Record<string, new (...args: any[]) => Error> = { Refused, Disconnected };

/** As Client, with the same streams, in a tab. `worker`: made from the file `sluice-stream/worker`, the same URL in all
 * tabs. Tabs that ask for the same share it, and so hear it from when they come; a stream ends with its last tab. */
export class SharedClient {
  readonly #port: MessagePort;
  readonly #listeners = new Map<number, (message: ToTab) => void>();
  #next = 0;

  constructor(readonly url: string, worker: SharedWorker, token: Token) {
    this.#port = worker.port;
    this.#port.onmessage = async ({ data }: MessageEvent<ToTab>) => {
      if (data.op === 'token') this.#send({ op: 'token', token: typeof token === 'string' ? token : await token() });
      else this.#listeners.get(data.id!)?.(data);
    };
    // A tab that is closed says so; one that comes back from the cache of pages opens its streams anew.
    addEventListener('pagehide', () => this.close());
  }

  filter(parameters: Parameters) { return this.#open('filter', parameters); }
  sample(parameters: Parameters = {}) { return this.#open('sample', parameters); }
  firehose(parameters: Parameters = {}) { return this.#open('firehose', parameters); }
  home(parameters: Parameters = {}) { return this.#open('home', parameters); }
  counts(parameters: Parameters) { return this.#open('counts', parameters); }
  trends(parameters: Parameters) { return this.#open('trends', parameters); }

  close(): void {
    for (const id of this.#listeners.keys()) this.#send({ op: 'close', id });
    for (const listener of this.#listeners.values()) listener({ op: 'end' });
  }

  #send(message: FromTab): void {
    this.#port.postMessage(message);
  }

  async *#open(stream: StreamName, parameters: Parameters): AsyncGenerator<Message, void> {
    const id = this.#next++, queue: ToTab[] = [];
    let wake = () => {};
    this.#listeners.set(id, (message) => {
      queue.push(message);
      wake();
    });
    this.#send({ op: 'open', id, url: this.url, stream, parameters });
    try {
      for (;;) {
        for (const { op, message, error } of queue.splice(0)) {
          if (error) throw error.name in ERRORS ? new ERRORS[error.name]!(...error.args) : new SluiceError(String(error.args[0]));
          if (op === 'end') return;
          yield message!;
        }
        if (queue.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      this.#listeners.delete(id);
      this.#send({ op: 'close', id });
    }
  }
}
