// streams.js - the streams of the page, on the one connection of all tabs: clients/typescript.

import { SharedClient } from '../../clients/typescript/src/shared.ts';
import { port } from './worker.js';

const SILENCE_MS = 45_000;

const worker = port ? { port } : (await import('../../clients/typescript/src/worker.ts')).inPage(); // a connection of this tab

export class PageStreams {
  // onState(state): as the package has it. Its name is idle, connecting, live, waiting (ms until the next try) or ended; its error has the
  // server's code and reason.
  constructor(onState) {
    this.onState = onState;
    this.use('');
  }

  get state() {
    return this.client.state;
  }

  // Everything is to be opened anew.
  use(token) {
    this.client?.close();
    this.client = new SharedClient(location.origin, worker, token, { onState: this.onState, silenceMs: SILENCE_MS });
  }

  // The messages of the stream at `path`, and first those that another tab has had. Throws why it cannot be had.
  read(path, signal) {
    const { pathname, searchParams } = new URL(path, location.origin);
    return this.client[pathname.split('/').at(-1)](Object.fromEntries(searchParams), { signal, past: true });
  }

  // Whoever waits for the next try, or has ended, tries at once.
  reconnect() {
    this.client.reconnect();
  }
}
