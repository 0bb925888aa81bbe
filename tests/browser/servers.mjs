// servers.mjs - a real redis-server and a real sluiced in a fresh folder, and the command line.
import { execFile, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync, readFileSync, openSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const SECRET = 'a secret for tests, longer than thirty-two bytes';
// Tests exceed the default limits per minute.
const UNBOUNDED = Object.fromEntries(['CONNECTS_PER_MINUTE', 'CONNECTS_PER_MINUTE_PER_ADDRESS',
  'BAD_TOKENS_PER_MINUTE', 'REQUESTS_PER_SECOND', 'REQUESTS_PER_SECOND_PER_ADDRESS', 'EVENTS_PER_DAY',
  'BYTES_PER_DAY', 'REPLAYED_PER_DAY'].map((what) => [`SLUICE_MAX_${what}`, '0']));
const SHARDS = process.env.SLUICE_TEST_SHARDS ?? '1';
const EVERYTHING = 'stream:filter stream:sample stream:firehose stream:home';

export class Servers {
  constructor(build) {
    this.build = build;
    this.folder = mkdtempSync(path.join(os.tmpdir(), 'sluice-browser-'));
    this.socket = path.join(this.folder, 'redis.sock');
    this.redisUrl = `unix://${this.socket}`;
    this.port = 0;
    writeFileSync(this.at('secret'), `${SECRET}\n`, { mode: 0o600 });
  }

  at(name) {
    return path.join(this.folder, name);
  }

  // `prepare` runs before the gateway starts.
  async start(prepare = async () => {}) {
    this.redis = spawn('redis-server', ['--port', '0', '--unixsocket', this.socket, '--save', '',
      '--dir', this.folder], { stdio: 'ignore' });
    await this.redisAnswers();
    if (SHARDS !== '1') await this.sluice('init', '--shards', SHARDS);
    await prepare();
    await this.startGateway();
  }

  // The socket appears when Redis listens.
  async redisAnswers() {
    for (let i = 0; i < 600; i++) {
      try {
        await this.publish([]);
        return;
      } catch {
        await new Promise((resolve) => { setTimeout(resolve, 50); });
      }
    }
    throw new Error('redis-server does not answer');
  }

  // Uses the port that it had before, if any.
  async startGateway(...options) {
    const log = openSync(this.at('log'), 'a');
    this.gateway = spawn(path.join(this.build, 'gateway/sluiced'), ['--dev', '--workers', '1',
      '--listen', `127.0.0.1:${this.port}`, '--redis', this.redisUrl,
      '--jwt-secret-file', this.at('secret'), '--run-tasks', SHARDS === '1' ? 'off' : 'on',
      '--ready-fd', '3', ...options], { stdio: ['ignore', log, log, 'pipe'],
      env: { ...process.env, ...UNBOUNDED } });
    const said = await Promise.race([once(this.gateway.stdio[3], 'data'), once(this.gateway, 'exit')]);
    if (!Buffer.isBuffer(said[0])) throw new Error(`sluiced did not start:\n${this.log()}`);
    this.port = JSON.parse(said[0].toString()).port;
    this.url = `http://127.0.0.1:${this.port}`;
  }

  async stopGateway() {
    const ended = once(this.gateway, 'exit');
    this.gateway.kill('SIGTERM');
    const [status] = await ended;
    if (status !== 0) throw new Error(`sluiced ended with ${status}:\n${this.log()}`);
    this.gateway = null;
  }

  async stop() {
    try {
      if (this.gateway) await this.stopGateway();
    } finally {
      if (this.redis) {
        const ended = once(this.redis, 'exit');
        this.redis.kill('SIGKILL');
        await ended;
      }
      rmSync(this.folder, { recursive: true, force: true });
    }
  }

  log() {
    return readFileSync(this.at('log'), 'utf8');
  }

  async sluice(...args) {
    const { stdout } = await run(path.join(this.build, 'cli/sluice'), args,
      { env: { ...process.env, SLUICE_REDIS: this.redisUrl } });
    return stdout.trim();
  }

  token(scope = EVERYTHING, sub = '1') {
    return this.sluice('token', '--secret-file', this.at('secret'), '--sub', sub, '--scope', scope,
      '--ttl', '3600');
  }

  // `sluice token` makes no expired tokens. One that expired less than a minute ago is still
  // accepted.
  expiredToken(seconds = 3600, sub = '1') {
    const encode = (part) => Buffer.from(JSON.stringify(part)).toString('base64url');
    const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ sub, scope: EVERYTHING,
      exp: Math.floor(Date.now() / 1000) - seconds })}`;
    return `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`;
  }

  post(user, text, ...options) {
    return this.sluice('post', '--user', user, ...options, '--', text);
  }

  // Writes a post with a time in the past to the log, which must be empty.
  async logPast(ms, text) {
    const id = String((ms - Date.UTC(2026, 0, 1)) * 4096);
    const event = foreignPost(text);
    await run('redis-cli', ['-s', this.socket, 'XADD', 'sluice:{0}:log', `${id}-0`, 'p', '0', 'e',
      JSON.stringify({ ...event, id, at: new Date(ms).toISOString(), post: { ...event.post, id } })]);
  }

  // Removes from each shard's log what is before `id`.
  async trimLogs(id) {
    for (let shard = 0; shard < Number(SHARDS); shard++) {
      await run('redis-cli', ['-s', this.socket, 'XTRIM', `sluice:{${shard}}:log`, 'MINID', `${id}-0`]);
    }
  }

  // Does this system have a font for a language? Asks fontconfig, as Chromium does. null: unknown.
  async hasFont(language) {
    try {
      return (await run('fc-list', [`:lang=${language}`, 'family'])).stdout.trim() !== '';
    } catch (error) {
      if (error.code === 'ENOENT') return null;
      throw error;
    }
  }

  // Sends a request as an administrator; resolves to the status.
  async administer(method, address, body) {
    const headers = { Authorization: `Bearer ${await this.token('admin', 'root')}`, 'Content-Type': 'application/json' };
    return (await fetch(this.url + address, { method, headers, body: body && JSON.stringify(body) })).status;
  }

  async status() {
    return (await fetch(`${this.url}/status.json`)).json();
  }

  // Publishes events of a foreign producer, all in one write; they are live only. Resolves when
  // Redis has answered for each.
  publish(events) {
    const commands = events.map((event) => ['PUBLISH', 'sluice:{0}:live', JSON.stringify(event)]);
    if (commands.length === 0) commands.push(['PING']);
    return new Promise((resolve, reject) => {
      const socket = net.connect(this.socket);
      let answers = 0;
      socket.on('error', reject);
      socket.on('data', (data) => {
        answers += data.toString().split('\r\n').length - 1;
        if (answers < commands.length) return;
        socket.destroy();
        resolve();
      });
      socket.write(commands.map((words) => `*${words.length}\r\n${words
        .map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`).join(''));
    });
  }
}

let foreign = 0;

export function foreignPost(text, more = {}) {
  const id = String(++foreign);
  return { id, type: 'post', at: new Date().toISOString(),
    post: { id, user: { id: 'f', login: 'far', name: 'Far Away' }, text, ...more } };
}
