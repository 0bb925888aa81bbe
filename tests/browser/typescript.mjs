// The TypeScript package with a real server: in Node through a restart, by fetch, by WebSocket, and
// as one of several streams on a connection; and in Chromium twenty tabs with three streams each on
// one connection. Tests of single situations are in tests/clients/kit.
//
//     node typescript.mjs BUILD_FOLDER
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { Servers } from './servers.mjs';

const build = path.resolve(process.argv[2]);
const load = createRequire(path.join(build, 'tests/browser/package.json'));
const dist = path.join(build, 'clients/typescript/dist');
const { Client, Connection, Disconnected, MemoryStore } = await import(pathToFileURL(path.join(dist, 'index.js')));
const servers = new Servers(build);
const TABS = 20, KEEP_ALIVE_MS = 1000;

async function until(what, condition) {
  for (const end = Date.now() + 60_000; Date.now() < end;) {
    if (await condition()) return;
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
  assert.fail(`not within a minute: ${what}`);
}

async function postMany(count) {
  const ids = [];
  for (let i = 0; i < count; i++) ids.push(await servers.post('ada', `number ${i}`));
  return ids;
}

async function goesOnThroughARestart(connect) {
  const [first] = await postMany(1);
  const token = await servers.token(), store = new MemoryStore();
  const client = connect(servers.url, { token: () => token, waitScale: 0.05 });
  const got = [];
  const reading = (async () => {
    for await (const message of client.firehose({ since: first }, { store, name: 'all' })) got.push(message.id);
  })();
  const ids = await postMany(3);
  await until('the first posts', () => got.length >= 3);
  await servers.stopGateway();
  ids.push(...await postMany(3));
  await servers.startGateway();
  ids.push(...await postMany(2));
  await until('all posts', () => got.length >= 8);
  client.close();
  await reading;
  assert.deepEqual(got, ids);
  assert.equal(store.load('all'), ids.at(-1));
}

async function finalReasonsAreThrown() {
  const client = new Client(servers.url, { token: servers.expiredToken() });
  await assert.rejects(client.firehose().next(), (error) => error instanceof Disconnected && error.code === 'token_expired');
}

// A silent stream of counts reports its position, too: otherwise a connection without another
// stream would be considered dead.
async function aQuietConnectionIsAlive() {
  await servers.stopGateway();
  await servers.startGateway('--keepalive-ms', String(KEEP_ALIVE_MS));
  const states = [];
  const connection = new Connection(servers.url, { token: await servers.token(), transport: load('ws').WebSocket, silenceMs: KEEP_ALIVE_MS * 2.5,
    onState: ({ name }) => states.push(name) });
  const reading = (async () => {
    for await (const _ of connection.counts({ bucket: '1d' })) assert.fail('of a day that is over');
  })();
  await until('it is live', () => states.at(-1) === 'live');
  await new Promise((resolve) => { setTimeout(resolve, KEEP_ALIVE_MS * 6); });
  assert.deepEqual(states, ['connecting', 'live']);
  connection.close();
  await reading;
}

// Serves pages of another origin with the package's files.
async function servePages() {
  const page = `<!doctype html><title>tab</title><script type="module">
    import { SharedClient } from '/index.js';
    const worker = new SharedWorker('/worker.js', { type: 'module' });
    const query = new URLSearchParams(location.hash.slice(1));
    const client = new SharedClient(query.get('url'), worker, () => query.get('token'));
    globalThis.got = [];
    globalThis.counted = 0;
    (async () => { for await (const { posts } of client.counts({ track: 'number', bucket: '1s' })) counted += posts; })();
    (async () => { for await (const message of client.trends({ window: '5m', of: 'words' })); })();
    for await (const message of client.filter({ track: 'number' })) got.push(message.id);
  </script>`;
  const server = createServer(({ url }, answer) => {
    const isScript = url === '/index.js' || url === '/worker.js';
    answer.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html');
    answer.end(isScript ? readFileSync(path.join(dist, url)) : page);
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return server;
}

async function tabsShareAConnection() {
  const { chromium } = load('playwright-core');
  const browser = await chromium.launch({ executablePath: process.env.SLUICE_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
  const pages = await servePages();
  try {
    const context = await browser.newContext();
    const token = await servers.token();
    const hash = new URLSearchParams({ url: servers.url, token });
    const tabs = await Promise.all(Array.from({ length: TABS }, async () => {
      const tab = await context.newPage();
      await tab.goto(`http://127.0.0.1:${pages.address().port}/#${hash}`);
      await tab.waitForFunction('globalThis.got !== undefined');
      return tab;
    }));
    const streams = async () => Number(/^sluice_streams (\d+)$/m.exec(await (await fetch(`${servers.url}/metrics`)).text())[1]);
    await until('one stream', async () => (await streams()) === 1);
    const ids = await postMany(2);
    for (const tab of tabs) await until('the posts in a tab', () => tab.evaluate((id) => globalThis.got.includes(id), ids[1]));
    for (const tab of tabs) await until('the counts in a tab', () => tab.evaluate(() => globalThis.counted >= 2));
    assert.equal(await streams(), 1);
    await Promise.all(tabs.slice(1).map((tab) => tab.close()));
    const more = await postMany(1);
    await until('the tab that is left', () => tabs[0].evaluate((id) => globalThis.got.includes(id), more[0]));
  } finally {
    await browser.close();
    pages.close();
  }
}

await servers.start();
try {
  await servers.sluice('user', 'add', 'ada');
  const { WebSocket } = load('ws');
  class LostWebSocket extends WebSocket { // as behind a proxy that lets none through
    constructor(url, protocols) { super(url.replace('/v1/stream', '/lost'), protocols); }
  }
  const tests = [
    () => goesOnThroughARestart((url, options) => new Client(url, options)),
    () => goesOnThroughARestart((url, options) => new Client(url, { ...options, transport: WebSocket })),
    () => goesOnThroughARestart((url, options) => new Connection(url, { ...options, transport: WebSocket })),
    () => goesOnThroughARestart((url, options) => new Connection(url, { ...options, transport: LostWebSocket })),
    finalReasonsAreThrown,
    aQuietConnectionIsAlive,
    tabsShareAConnection,
  ];
  for (const test of tests) await test();
  console.log(`${tests.length} passed, 0 failed`);
} finally {
  await servers.stop();
}
