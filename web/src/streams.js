// streams.js - the streams of the page, on the connection that all tabs share: clients/typescript.

import { SharedClient } from '../../clients/typescript/src/shared.ts';
import { port } from './worker.js';

const SILENCE_MS = 45_000;
const TRIP_EVERY_MS = 10_000;

const worker = port ? { port } : (await import('../../clients/typescript/src/worker.ts')).inPage(); // a connection of this tab alone

export class PageStreams {
  // onState(state): see clients/typescript. The name is idle, connecting, live, waiting (ms until the next attempt) or
  // ended; the error has the server's code and reason.
  constructor(onState) {
    this.onState = onState;
    this.tripMs = undefined;
    this.measured = -Infinity;
    this.use('');
  }

  get state() {
    return this.client.state;
  }

  // All streams must be opened again after this.
  use(token) {
    this.client?.close();
    this.client = new SharedClient(location.origin, worker, token, { onState: this.onState, silenceMs: SILENCE_MS });
  }

  // The messages of the stream at `path`, beginning with those that another tab has received. Throws if the stream is
  // refused.
  read(path, signal) {
    const { pathname, searchParams } = new URL(path, location.origin);
    return this.client[pathname.split('/').at(-1)](Object.fromEntries(searchParams), { signal, past: true });
  }

  // Measures how long the server needs to answer, in tripMs, if that was not done within 10 s. No message tells how long
  // it took to come: this computer's clock may differ from the server's.
  async measure() {
    if (this.state.name !== 'live') {
      this.tripMs = undefined; // unknown
      this.measured = -Infinity;
    } else if (performance.now() - this.measured > TRIP_EVERY_MS) {
      this.measured = performance.now();
      this.tripMs = await this.client.roundTrip();
    }
  }

  // Connects at once, if it waits for the next attempt or has ended.
  reconnect() {
    this.client.reconnect();
  }
}
