// publisher.mjs - publishes posts at a rate as the social core does: into the log, and on the
// channel, with ids of Redis' time. One small script for all that is due costs the machine much
// less than a script for each post, so that 10,000 a second are possible beside a browser on two
// cores.
import net from 'node:net';
import { posts } from './posts.mjs';

const TURN_MS = 5;
// ARGV: the time as text, then the members of each post after its id. A millisecond has 64 ids.
const SCRIPT = `
local time = redis.call('TIME')
local now = (time[1] * 1000 + math.floor(time[2] / 1000) - ${Date.UTC(2026, 0, 1)}) * 4096
local id = tonumber(redis.call('GET', 'bench:id') or 0)
local print = function(number) return string.format('%.0f', number) end
for i = 2, #ARGV do
    local previous = print(id)
    id = math.max(now, id + 1)
    if id % 4096 >= 64 then
        id = id - id % 4096 + 4096
    end
    local event = '{"id":"' .. print(id) .. '","type":"post","at":"' .. ARGV[1] .. '","post":{"id":"' .. print(id) .. '",' .. ARGV[i] .. '}'
    redis.call('XADD', 'sluice:{0}:log', 'MAXLEN', '~', '100000', print(id) .. '-0', 'p', previous, 'e', event)
    redis.call('PUBLISH', 'sluice:{0}:live', print(id) .. ' ' .. previous .. ' ' .. event)
end
redis.call('SET', 'bench:id', print(id))`;

const command = (...words) => `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;

export class Publisher {
  // `path`: the socket of a Redis with one shard that nobody else writes to.
  constructor(path) {
    this.redis = net.connect(path);
    this.redis.on('data', (answer) => { if (answer.includes('-ERR')) throw new Error(answer.toString()); });
    this.bodies = posts(5000).map((post) => JSON.stringify(post).slice(1)); // '"user":...}'
  }

  start(rate) {
    const start = Date.now();
    let made = 0;
    this.timer = setInterval(() => {
      const due = [];
      for (const all = ((Date.now() - start) * rate) / 1000; made < all; made++) due.push(this.bodies[made % this.bodies.length]);
      if (due.length > 0) this.redis.write(command('EVAL', SCRIPT, '0', new Date().toISOString(), ...due));
    }, TURN_MS);
  }

  stop() {
    clearInterval(this.timer);
  }

  close() {
    this.stop();
    this.redis.destroy();
  }
}
