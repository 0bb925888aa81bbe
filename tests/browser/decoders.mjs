// decoders.mjs - compressed streams, read by independent decoders.
//
//     node tests/browser/decoders.mjs BUILD_FOLDER
//
// Chromium's EventSource, fetch and WebSocket, Node's fetch and zlib, and the package ws: each must
// read exactly what an uncompressed stream with the same filter has, while other clients come and
// go, lanes restart their histories and keep-alives are sent, until the streams are closed
// properly. Then Chromium's EventSource and fetch again, where only zstd is offered.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import http from 'node:http';
import path from 'node:path';
import process from 'node:process';
import zlib from 'node:zlib';
import { Servers, foreignPost } from './servers.mjs';

const build = path.resolve(process.argv[2] ?? 'build/dev');
const packages = createRequire(path.join(build, 'tests/browser/package.json'));
const { chromium } = packages('playwright-core');
const { WebSocket } = packages('ws');
const DEADLINE_MS = 30_000 * Number(process.env.SLUICE_TEST_TIMEOUT_FACTOR ?? 1);
const SERVICE_RESTART = 1012; // the code with which drained WebSockets are closed
const FIREHOSE = '/v1/stream/firehose';
const WORDS = ['stream', 'of', 'events', 'coffee', 'tea', 'a', 'gateway', '日本', '☕', 'Dublin', '"quoted"', '\\'];

const servers = new Servers(build);
let page;
let token;

async function until(condition, what) {
  const end = Date.now() + DEADLINE_MS;
  while (!await condition()) {
    if (Date.now() > end) throw new Error(`not within ${DEADLINE_MS / 1000} s: ${what()}`);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

// --- readers: `posts` has the JSON of each post, `encoding` the agreed encoding, `ended` resolves
// at a proper end ---

class Reader {
  constructor(name) {
    this.name = name;
    this.posts = [];
    this.rest = '';
    this.blankLines = 0; // in NDJSON: keep-alives
    this.isOpen = false;
    this.ended = false;
  }

  open(encoding) {
    this.encoding = encoding ?? 'none';
    this.isOpen = true;
  }

  line(line) {
    const json = line.replace(/^data: ?/, '').trimEnd();
    this.blankLines += json === '';
    if (json.startsWith('{') && JSON.parse(json).type === 'post') this.posts.push(json);
  }

  text(piece) {
    const lines = (this.rest + piece).split('\n');
    this.rest = lines.pop();
    for (const line of lines) this.line(line);
  }
}

function nodeHttp(name, accept, acceptEncoding) {
  const reader = new Reader(name);
  const request = http.get(servers.url + FIREHOSE, { agent: false, headers: {
    Authorization: `Bearer ${token}`, Accept: accept, 'Accept-Encoding': acceptEncoding } }, (answer) => {
    reader.open(answer.headers['content-encoding']);
    const body = reader.encoding === 'gzip' ? answer.pipe(zlib.createGunzip()) : answer;
    body.setEncoding('utf8');
    body.on('data', (piece) => reader.text(piece));
    body.on('end', () => { reader.ended = true; });
    body.on('error', (error) => { reader.error = error; });
  });
  reader.close = () => request.destroy();
  request.on('error', () => {});
  return reader;
}

function nodeFetch(name, accept) {
  const reader = new Reader(name);
  (async () => {
    const answer = await fetch(servers.url + FIREHOSE, { headers: { Authorization: `Bearer ${token}`, Accept: accept } });
    reader.open(answer.headers.get('content-encoding'));
    const decoder = new TextDecoder();
    for await (const piece of answer.body) reader.text(decoder.decode(piece, { stream: true }));
    reader.ended = true;
  })().catch((error) => { reader.error = error; });
  return reader;
}

function ws(name, target, perMessageDeflate, says = []) {
  const reader = new Reader(name);
  const socket = new WebSocket(servers.url.replace('http', 'ws') + target, { perMessageDeflate,
    headers: { Authorization: `Bearer ${token}` } });
  let answers = 0;
  if (says.length === 0) socket.on('open', () => reader.open(socket.extensions));
  socket.on('open', () => says.forEach((message) => socket.send(JSON.stringify(message))));
  socket.on('message', (data) => {
    reader.line(data.toString());
    if (JSON.parse(data).op === 'subscribed' && ++answers === says.length) reader.open(socket.extensions);
  });
  socket.on('close', (code) => {
    if (code === SERVICE_RESTART) reader.ended = true;
    else reader.error ??= new Error(`closed with ${code}`);
  });
  socket.on('error', (error) => { reader.error = error; });
  reader.close = () => socket.terminate();
  return reader;
}

// Runs in the page, which passes on what it reads.
const READ_IN_PAGE = {
  EventSource: ({ name, target, token: bearer }) => {
    const source = new EventSource(`${target}?access_token=${bearer}`);
    source.onopen = () => globalThis.told(name, 'open');
    source.addEventListener('post', ({ data }) => globalThis.told(name, 'line', data));
    source.addEventListener('disconnect', () => {
      source.close();
      globalThis.told(name, 'end');
    });
  },
  fetch: ({ name, target, token: bearer }) => {
    const read = async () => {
      const answer = await fetch(target, { headers: { Authorization: `Bearer ${bearer}` } });
      globalThis.told(name, 'open', answer.headers.get('content-encoding'));
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let piece; !(piece = await reader.read()).done;) globalThis.told(name, 'text', piece.value);
      globalThis.told(name, 'end');
    };
    read().catch((error) => globalThis.told(name, 'error', String(error))); // nobody awaits it
  },
  WebSocket: ({ name, target, token: bearer }) => {
    const socket = new WebSocket(`ws://${location.host}${target}`, ['sluice.v1', `bearer.${bearer}`]);
    socket.onopen = () => globalThis.told(name, 'open', socket.extensions);
    socket.onmessage = ({ data }) => globalThis.told(name, 'line', data);
    socket.onclose = ({ code }) => globalThis.told(name, code === 1012 ? 'end' : 'error', `closed with ${code}`);
  },
};

const inPage = new Map();

function hear(name, what, text) {
  const reader = inPage.get(name);
  if (what === 'open') reader.open(text ?? reader.encoding);
  else if (what === 'end') reader.ended = true;
  else if (what === 'error') reader.error = new Error(text);
  else reader[what](text);
}

async function chromiumReader(kind) {
  const reader = new Reader(`Chromium's ${kind}`);
  inPage.set(reader.name, reader);
  await page.evaluate(READ_IN_PAGE[kind], { name: reader.name, target: FIREHOSE, token });
  return reader;
}

// Only the debugger sees the response headers of an EventSource.
async function openPage(browser) {
  page = await browser.newPage();
  await page.exposeFunction('told', hear);
  await page.goto(`${servers.url}/status`);
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  session.on('Network.responseReceived', ({ type, response }) => {
    if (type !== 'EventSource') return;
    const headers = Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name.toLowerCase(), value]));
    inPage.get("Chromium's EventSource").encoding = headers['content-encoding'];
  });
}

// --- the tests ---

let number = 0;

function publishSome(count) {
  return servers.publish(Array.from({ length: count }, () => {
    number++;
    const words = Array.from({ length: [2, 20, 400][number % 3] }, (_, i) => WORDS[(number * 7 + i * i) % WORDS.length]);
    return foreignPost(words.join(' '), { lang: 'en' });
  }));
}

async function allHave(readers, count) {
  await until(() => readers.every((reader) => reader.error || reader.posts.length >= count),
    () => readers.map(({ name, posts }) => `${name} has ${posts.length} of ${count}`).join(', '));
  for (const { name, error } of readers) assert.equal(error, undefined, name);
}

async function comeAndGo() {
  const passing = [ws('passing', FIREHOSE, true), nodeHttp('passing', 'text/event-stream', 'gzip')];
  await until(() => passing.every(({ isOpen }) => isOpen), () => 'they have come');
  await publishSome(1);
  await allHave(passing, 1);
  for (const reader of passing) reader.close();
}

async function allEnd(readers) {
  await servers.stopGateway();
  await until(() => readers.every(({ ended, error }) => ended || error),
    () => readers.filter(({ ended }) => !ended).map(({ name }) => `${name} has not ended`).join(', '));
  for (const { name, error } of readers) assert.equal(error, undefined, name);
}

// Each chunk is a frame, also a keep-alive.
async function framesOfZstd() {
  await servers.startGateway('--keepalive-ms', '500', '--compression', 'zstd');
  await page.goto(`${servers.url}/status`);
  const sibling = nodeHttp('the sibling', 'application/x-ndjson', 'identity');
  const readers = await Promise.all(['EventSource', 'fetch'].map(chromiumReader));
  await until(() => readers.every(({ isOpen }) => isOpen) && sibling.isOpen, () => 'they have come');
  await until(() => readers.every(({ encoding }) => encoding === 'zstd'),
    () => readers.map(({ name, encoding }) => `${name}: ${encoding}`).join(', '));
  for (let round = 1; round <= 4; round++) {
    await publishSome(6);
    await allHave([sibling, ...readers], 6 * round);
    if (round === 2) await until(() => sibling.blankLines > 0, () => 'a keep-alive');
  }
  for (const reader of readers) assert.deepEqual(reader.posts, sibling.posts, reader.name);
  await allEnd([sibling, ...readers]);
  for (const { name, posts } of readers) console.log(`ok: ${name}, zstd, ${posts.length} posts`);
}

const rule = { op: 'subscribe', id: 'coffee', filter: { track: 'coffee' } };
const browser = await chromium.launch({
  executablePath: process.env.SLUICE_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--disable-dev-shm-usage', ...(process.getuid() === 0 ? ['--no-sandbox'] : [])],
});
try {
  await servers.start();
  await servers.stopGateway();
  await servers.startGateway('--keepalive-ms', '2000', '--compression-reset-flushes', '3');
  token = await servers.token();
  await openPage(browser);
  const sibling = nodeHttp('the sibling', 'application/x-ndjson', 'identity');
  const ruledSibling = ws('the ruled sibling', '/v1/stream', false, [rule]);
  const zipped = nodeHttp("Node's zlib, NDJSON", 'application/x-ndjson', 'gzip');
  const readers = [
    zipped,
    ...await Promise.all(Object.keys(READ_IN_PAGE).map(chromiumReader)),
    nodeHttp("Node's zlib, SSE", 'text/event-stream', 'gzip'),
    nodeFetch("Node's fetch", 'text/event-stream'),
    ws('ws', FIREHOSE, true),
    ws('ws without a history', FIREHOSE, { serverNoContextTakeover: true }),
    ws('ws with a small window', FIREHOSE, { serverMaxWindowBits: 12 }),
  ];
  const ruled = ws('ws that compresses what it says', '/v1/stream', { threshold: 0 }, [rule]);
  const everyone = [sibling, ruledSibling, ...readers, ruled];
  await until(() => everyone.every((reader) => reader.isOpen || reader.error),
    () => everyone.filter(({ isOpen }) => !isOpen).map(({ name }) => name).join(', '));
  for (const { name, encoding } of [...readers, ruled]) {
    assert.match(encoding, name.includes('ws') || name.includes('WebSocket') ? /^permessage-deflate/ : /^gzip$/, name);
  }

  for (let round = 0; round < 8; round++) {
    await publishSome(10);
    await comeAndGo();
    await allHave([sibling, ...readers], number);
    if (round === 4) await until(() => zipped.blankLines > 0, () => 'a keep-alive');
  }
  await until(() => ruled.posts.length === ruledSibling.posts.length, () => 'what the rule wants has come');
  assert.ok(ruled.posts.length > 10 && ruled.posts.every((json) => json.includes('matching_rules')));
  assert.deepEqual(ruled.posts, ruledSibling.posts);
  for (const reader of readers) assert.deepEqual(reader.posts, sibling.posts, reader.name);
  const metrics = await (await fetch(`${servers.url}/metrics`)).text();
  assert.ok(Number(/^sluice_compression_resets_total (\d+)/m.exec(metrics)[1]) > 3, 'histories begin anew');

  await allEnd(everyone);
  for (const { name, posts } of readers) console.log(`ok: ${name}, ${posts.length} posts`);
  await framesOfZstd();
} finally {
  await browser.close();
  await servers.stop();
}
