// A connection: what it brings, until it ends or throws. `signal` ends it.
import { Interrupted } from './errors.js';
import type { Given, Session } from './session.js';

const SILENCE_MS = 70_000;

/** Aborts when nothing has been heard for too long. */
class Silence {
  readonly #abort = new AbortController();
  readonly signal: AbortSignal;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly ms: number, outer: AbortSignal) {
    this.signal = this.#abort.signal;
    if (outer.aborted) this.#abort.abort(outer.reason);
    outer.addEventListener('abort', () => this.#abort.abort(outer.reason), { signal: this.signal });
    this.heard();
  }

  heard(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#abort.abort(new Interrupted('silence')), this.ms);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
  }
}

export async function* byFetch(session: Session, token: string, signal: AbortSignal): AsyncGenerator<Given> {
  const silence = new Silence(session.options.silenceMs ?? SILENCE_MS, signal);
  try {
    const answer = await fetch(session.url(), {
      headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' },
      signal: silence.signal,
      cache: 'no-store',
    });
    if (answer.status !== 200) throw session.refused(answer.status, answer.headers.get('retry-after'), await answer.text());
    session.opened(answer.headers.get('content-type'));
    const reader = answer.body!.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      silence.heard();
      yield* session.feed(value);
    }
  } finally {
    silence.end();
  }
}

/** A constructor of the WebSocket interface: the browser's, Node's, or that of the package `ws`. */
export type WebSocketClass = new (url: string, protocols: string[]) => WebSocket;

/** A browser does not say why an upgrade was refused: then the same is asked by fetch. */
export async function* byWebSocket(session: Session, token: string, signal: AbortSignal,
  Socket: WebSocketClass): AsyncGenerator<Given> {
  const socket = new Socket(session.url({ cursors: 'true' }).replace(/^http/, 'ws'), ['sluice.v1', `bearer.${token}`]);
  const queue: string[] = [];
  let wake = () => {}, isOpen = false, isOver = false;
  const silence = new Silence(session.options.silenceMs ?? SILENCE_MS, signal);
  const over = () => {
    isOver = true;
    wake();
  };
  socket.onopen = () => (isOpen = true);
  socket.onmessage = ({ data }) => {
    silence.heard();
    queue.push(String(data));
    wake();
  };
  socket.onclose = over;
  socket.onerror = over;
  silence.signal.addEventListener('abort', over);
  session.begun();
  try {
    for (;;) {
      while (queue.length > 0) yield* session.feedMessage(queue.shift()!);
      if (isOver) break;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    silence.end();
    socket.close();
  }
  if (!isOpen && !signal.aborted) yield* byFetch(session, token, signal);
}
