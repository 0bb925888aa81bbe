// publisher.mjs - publishes posts at a rate as the social core does: into the log, and on the
// channel, with ids of now. That costs the machine much less than the scripts that make posts, so
// that 10,000 a second are possible beside a browser on two cores.
import net from 'node:net';
import { posts } from './posts.mjs';

const EPOCH_MS = Date.UTC(2026, 0, 1);
const IDS_PER_MS = 4096;
const OF_A_SHARD = 64; // ids of one shard in a millisecond
const TURN_MS = 10;
const LOG_MAX = '100000';

const command = (...words) => `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;

export class Publisher {
  // `path`: the socket of a Redis with one shard that nobody else writes to.
  constructor(path) {
    this.redis = net.connect(path);
    this.redis.on('data', (answer) => { if (answer.includes('-ERR')) throw new Error(answer.toString()); });
    this.id = 0; // of the newest post
    this.made = 0;
    this.bodies = posts(5000).map((post) => JSON.stringify(post).slice(1)); // '"user":...}'
  }

  start(rate) {
    const start = Date.now();
    const before = this.made;
    this.timer = setInterval(() => {
      const now = Date.now();
      const due = before + Math.floor(((now - start) * rate) / 1000);
      let batch = '';
      while (this.made < due) batch += this.next(start + Math.floor(((this.made - before) * 1000) / rate));
      this.redis.write(batch + command('XTRIM', 'sluice:{0}:log', 'MAXLEN', '~', LOG_MAX));
    }, TURN_MS);
  }

  // The commands of a post that is created at `ms`.
  next(ms) {
    const first = (ms - EPOCH_MS) * IDS_PER_MS;
    const id = Math.max(first, this.id + 1);
    if (id >= first + OF_A_SHARD) throw new Error('more than 64 posts in a millisecond');
    const previous = this.id;
    this.id = id;
    const body = this.bodies[this.made++ % this.bodies.length];
    const event = `{"id":"${id}","type":"post","at":"${new Date(ms).toISOString()}","post":{"id":"${id}",${body}}`;
    return command('XADD', 'sluice:{0}:log', `${id}-0`, 'p', String(previous), 'e', event)
      + command('PUBLISH', 'sluice:{0}:live', `${id} ${previous} ${event}`);
  }

  stop() {
    clearInterval(this.timer);
  }

  close() {
    this.stop();
    this.redis.destroy();
  }
}
