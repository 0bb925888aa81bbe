// The transports of one stream. Each yields what arrives until the connection ends or fails; `signal` ends it.
import { Interrupted, type Reason } from './errors.js';
import type { Given, Session } from './session.js';
import type { Tokens } from './tokens.js';
import { Queue } from './waiting.js';

export const SILENCE_MS = 70_000;

/** Aborts when nothing has arrived for too long. */
export class Silence {
  readonly #abort = new AbortController();
  readonly signal: AbortSignal;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly ms: number, outer?: AbortSignal) {
    this.signal = this.#abort.signal;
    if (outer?.aborted) this.#abort.abort(outer.reason);
    outer?.addEventListener('abort', () => this.#abort.abort(outer.reason), { signal: this.signal });
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

/** Returns the token that the connection `id` has from now on; throws if it must be opened again with it. */
async function renew(session: Session, id: string | null, tokens: Tokens, used: string, signal: AbortSignal): Promise<string> {
  const token = await tokens.next(used);
  if (token === undefined) return used; // until it expires
  const answer = id && await fetch(`${session.base}/v1/connections/${id}/token`,
    { method: 'PUT', headers: { Authorization: `Bearer ${token}` }, signal }).catch(() => undefined);
  if (!answer || !answer.ok) throw new Interrupted('the new token was refused', 0);
  return token;
}

export async function* byFetch(session: Session, tokens: Tokens, signal: AbortSignal): AsyncGenerator<Given> {
  let token = await tokens.fresh();
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
      for (const given of session.feed(value)) {
        if (given.expires) token = await renew(session, answer.headers.get('sluice-connection'), tokens, token, silence.signal);
        else yield given;
      }
    }
  } finally {
    silence.end();
  }
}

/** A constructor of the WebSocket interface: the browser's, Node's, or that of the package `ws`. */
export type WebSocketClass = new (url: string, protocols: string[]) => WebSocket;

const NO_WEBSOCKET: Reason = { code: 'no_websocket', reason: 'the server answers, but a WebSocket to it cannot be opened' }; // by a proxy

/** A browser does not say why an upgrade was refused: a stream over HTTP is refused for the same reason. */
export async function whyNoWebSocket(session: Session, token: string, signal: AbortSignal): Promise<Error> {
  const silence = new Silence(session.options.silenceMs ?? SILENCE_MS, signal);
  try {
    const answer = await fetch(session.probe(), { headers: { Authorization: `Bearer ${token}` }, signal: silence.signal, cache: 'no-store' });
    if (answer.status === 200) return new Interrupted('no WebSocket', undefined, false, NO_WEBSOCKET);
    return session.refused(answer.status, answer.headers.get('retry-after'), await answer.text());
  } catch {
    return new Interrupted('no connection'); // no server answers
  } finally {
    silence.end();
  }
}

export function isWithoutWebSocket(why: unknown): boolean {
  return why instanceof Interrupted && why.reason === NO_WEBSOCKET;
}

/** If it cannot be opened, the same is requested with fetch. */
export async function* byWebSocket(session: Session, tokens: Tokens, signal: AbortSignal,
  Socket: WebSocketClass): AsyncGenerator<Given> {
  let token = await tokens.fresh();
  const socket = new Socket(session.url({ cursors: 'true' }).replace(/^http/, 'ws'), ['sluice.v1', `bearer.${token}`]);
  const queue = new Queue<string>(), { filters } = session;
  let isOpen = false, isOver = false, code: number | undefined;
  const silence = new Silence(session.options.silenceMs ?? SILENCE_MS, signal);
  const over = () => {
    isOver = true;
    queue.end();
  };
  socket.onopen = () => {
    isOpen = true;
    filters?.opened((operation) => socket.send(JSON.stringify(operation)));
  };
  socket.onmessage = ({ data }) => {
    silence.heard();
    queue.push(typeof data === 'string' ? data : ''); // binary messages are ignored
  };
  socket.onclose = (event) => {
    code = event.code;
    over();
  };
  socket.onerror = () => {}; // a close follows
  silence.signal.addEventListener('abort', over);
  session.begun();
  try {
    for await (const text of queue.read()) {
      for (const given of session.feedMessage(text)) {
        if (!given.expires) {
          yield given;
          continue;
        }
        const next = await tokens.next(token);
        if (next !== undefined && !isOver) socket.send(JSON.stringify({ op: 'token', token: token = next }));
      }
    }
  } finally {
    filters?.closed();
    silence.end();
    socket.close();
  }
  if (signal.aborted) return;
  if (isOpen) throw session.closed(code);
  if (filters) throw await whyNoWebSocket(session, token, signal);
  yield* byFetch(session, tokens, signal);
}
