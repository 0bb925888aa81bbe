// connection.js - the tab's end of the hub, which all tabs share; without SharedWorker the tab has its own.

import { serveInPage } from './hub.js';
import { port } from './worker.js';

export class Connection {
  // onState(state): as of Link.
  constructor(onState) {
    this.onState = onState;
    this.takers = new Map(); // key -> take
    this.keys = 0;
    this.state = { name: 'idle' };
    this.port = port ?? serveInPage();
    this.port.onmessage = ({ data }) => {
      if (data.state) {
        this.state = data.state;
        this.onState(data.state);
      } else {
        this.takers.get(data.key)?.(data.message);
      }
    };
    const lock = `sluice-tab-${crypto.getRandomValues(new Uint32Array(2)).join('')}`;
    navigator.locks?.request(lock, () => {
      this.say({ lock });
      return new Promise(() => {}); // as long as the tab lives
    });
    addEventListener('pagehide', () => this.say({ bye: true }));
  }

  say(message) {
    this.port.postMessage(message);
  }

  // Everything is to be opened anew.
  use(token) {
    this.takers.clear();
    this.say({ token });
  }

  open(path, take) {
    const key = ++this.keys;
    this.takers.set(key, take);
    this.say({ open: path, key });
    return key;
  }

  close(key) {
    this.takers.delete(key);
    this.say({ close: key });
  }

  hurry() {
    this.say({ hurry: true });
  }
}
