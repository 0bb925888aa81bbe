// Many streams on one connection, and one connection for many tabs, with a WebSocket that the test plays.
//
//     SLUICE_TYPESCRIPT=FOLDER_OF_THE_BUILT_PACKAGE node --test connection.test.mjs
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { pathToFileURL } from 'node:url';

const dist = pathToFileURL(`${process.env.SLUICE_TYPESCRIPT}/`);
const { Connection, Disconnected, Refused, SharedClient } = await import(new URL('index.js', dist));
const { inPage } = await import(new URL('worker.js', dist));

const FIRST = 10_000_000_000_000;
const at = (number) => String(FIRST + number);
const post = (number) => ({ id: at(number), type: 'post', post: { id: at(number), text: 'tea' } });
const AGAIN = { waitScale: 0.001 };

let sockets;

class PlayedSocket {
  constructor(url, protocols) {
    Object.assign(this, { url, protocols, heard: [] });
    sockets.push(this);
  }

  send(text) { this.heard.push(JSON.parse(text)); }
  close() { this.isClosed = true; }
  open() { this.onopen(); }
  say(message) { this.onmessage({ data: JSON.stringify(message) }); }
  cut(code = 1006) { this.onclose({ code }); }
  get opened() { return this.heard.filter(({ op }) => op === 'open'); }

  answer() {
    for (const { id } of this.opened) this.say({ op: 'opened', id });
  }

  nameOf(words) { return this.opened.findLast(({ path }) => path.includes(words)).id; }
}

beforeEach(() => {
  sockets = [];
  globalThis.WebSocket = PlayedSocket;
  globalThis.fetch = async () => { throw new TypeError('nobody is there'); };
});

const left = [];
afterEach(() => left.splice(0).reverse().forEach((leave) => leave()));

async function until(condition) {
  for (let i = 0; i < 2000 && !condition(); i++) await new Promise((resolve) => { setTimeout(resolve, 2); });
  assert.ok(condition(), String(condition));
}

function connect(options) {
  const states = [];
  const connection = new Connection('http://a.example', { token: 'a-token', ...AGAIN, onState: (state) => states.push(state), ...options });
  left.push(() => connection.close());
  return { connection, states };
}

// What a stream gives, in the order that it comes.
function read(stream) {
  const told = { messages: [], isOver: false };
  (async () => {
    try {
      for await (const message of stream) told.messages.push(message.id ? Number(message.id) - FIRST : message.type);
    } catch (error) {
      told.error = error;
    }
    told.isOver = true;
  })();
  return told;
}

test('how it fares is told, with what the server has said', async () => {
  const { connection, states } = connect();
  const tea = read(connection.filter({ track: 'tea' }));
  await until(() => sockets.length === 1);
  assert.equal(sockets[0].url, 'ws://a.example/v1/stream');
  assert.deepEqual(sockets[0].protocols, ['sluice.v1', 'bearer.a-token']);
  sockets[0].open();
  sockets[0].answer();
  sockets[0].say({ ...post(1), stream: sockets[0].nameOf('tea') });
  sockets[0].say({ type: 'disconnect', code: 'quota', reason: 'enough for today', retry_ms: 20 });
  await until(() => sockets.length === 2);
  assert.equal(states.map(({ name }) => name).join(' '), 'connecting live waiting connecting');
  assert.deepEqual(states[2].error, { code: 'quota', reason: 'enough for today' });
  assert.equal(sockets[0].isClosed, true);
  sockets[1].cut();
  await until(() => sockets.length === 3);
  assert.deepEqual([states.at(-2).name, states.at(-2).error], ['waiting', undefined]);
  assert.deepEqual(tea.messages, [1]);
});

test('what the server warns of when it opens a stream is its first message, as over HTTP', async () => {
  const { connection } = connect();
  const tea = read(connection.filter({ rule: 'tea or milk' }));
  await until(() => sockets.length === 1);
  sockets[0].open();
  const id = sockets[0].nameOf('tea');
  sockets[0].say({ op: 'opened', id, warnings: [{ code: 'operator_word', message: 'looked for as a word', param: 'rule', at: 4 }] });
  sockets[0].say({ ...post(1), stream: id });
  await until(() => tea.messages.length === 2);
  assert.deepEqual(tea.messages, ['warning', 1]);
});

test('how long the server needs to answer is measured, for each who asks', async () => {
  const { connection } = connect();
  assert.equal(await connection.roundTrip(), undefined); // nobody is there
  read(connection.filter({ track: 'tea' }));
  await until(() => sockets.length === 1);
  sockets[0].open();
  const trips = [connection.roundTrip(), connection.roundTrip()];
  assert.equal(sockets[0].heard.filter(({ op }) => op === 'list').length, 2);
  await new Promise((resolve) => { setTimeout(resolve, 20); });
  for (const _ of trips) sockets[0].say({ op: 'list', rules: [], streams: [] });
  for (const trip of trips) assert.ok(await trip >= 19 && await trip < 5000, String(await trip));
  const never = connection.roundTrip();
  sockets[0].cut();
  assert.equal(await never, undefined);
});

test('what ends it for good ends no stream of who is told, and all go on with reconnect()', async () => {
  const { connection, states } = connect();
  const tea = read(connection.filter({ track: 'tea' }));
  await until(() => sockets.length === 1);
  sockets[0].open();
  sockets[0].answer();
  sockets[0].say({ ...post(1), stream: sockets[0].nameOf('tea') });
  sockets[0].say({ type: 'disconnect', code: 'replaced', reason: 'a newer one took its place' });
  await until(() => connection.state.name === 'ended');
  assert.deepEqual([states.at(-1).error.code, states.at(-1).error.reason], ['replaced', 'a newer one took its place']);
  const milk = read(connection.filter({ track: 'milk' })); // does not begin by itself
  await new Promise((resolve) => { setTimeout(resolve, 30); });
  assert.equal(sockets.length, 1);
  connection.reconnect();
  await until(() => sockets.length === 2);
  sockets[1].open();
  assert.deepEqual(sockets[1].opened.map(({ path }) => path), [
    `/v1/stream/filter?track=tea&cursors=true&since=${at(1)}`, '/v1/stream/filter?track=milk&cursors=true']);
  assert.deepEqual([tea.isOver, milk.isOver], [false, false]);
});

test('what ends it for good is thrown to who is not told', async () => {
  const { connection } = connect({ onState: undefined });
  const streams = ['tea', 'milk'].map((track) => read(connection.filter({ track })));
  await until(() => sockets.length === 1);
  sockets[0].open();
  sockets[0].say({ type: 'disconnect', code: 'ended', reason: 'by an operator' });
  await until(() => streams.every(({ isOver }) => isOver));
  for (const { error } of streams) assert.ok(error instanceof Disconnected && error.code === 'ended' && error.reason === 'by an operator');
  read(connection.filter({ track: 'tea' }));
  await until(() => sockets.length === 2); // who asks again wants it
});

test('why an upgrade was refused is asked over HTTP', async () => {
  const asked = [];
  globalThis.fetch = async (url, { headers }) => {
    asked.push([url, headers.Authorization]);
    return new Response(JSON.stringify({ error: { code: 'invalid_token', message: 'the signature is wrong' } }), { status: 401 });
  };
  const { connection } = connect();
  read(connection.filter({ track: 'tea' }));
  await until(() => sockets.length === 1);
  sockets[0].cut();
  await until(() => connection.state.name === 'ended');
  assert.deepEqual(asked, [['http://a.example/v1/stream/filter?track=tea', 'Bearer a-token']]);
  const { status, code, reason } = connection.state.error;
  assert.deepEqual([status, code, reason], [401, 'invalid_token', 'the signature is wrong']);
});

test('a proxy that lets no WebSocket through is told apart from a server that is away', async () => {
  globalThis.fetch = async () => new Response('', { headers: { 'Content-Type': 'application/x-ndjson' } });
  const { connection, states } = connect();
  read(connection.filter({ track: 'tea' }));
  await until(() => sockets.length === 1);
  sockets[0].cut();
  await until(() => sockets.length === 2);
  assert.equal(states.find(({ name }) => name === 'waiting').error.code, 'no_websocket');
});

// Where a proxy lets no WebSocket through: responses over HTTP, after one that says that the server answers.
function playResponses() {
  const responses = [];
  globalThis.fetch = async (url, { headers, signal }) => {
    if (headers.Accept !== 'text/event-stream') return new Response('', { headers: { 'Content-Type': 'application/x-ndjson' } });
    const response = { url, signal };
    const body = new ReadableStream({ start: (controller) => Object.assign(response, { controller }) });
    signal.addEventListener('abort', () => {
      try {
        response.controller.error(signal.reason);
      } catch {
        // it is over
      }
    });
    response.say = (message, cursor = message.id) => response.controller.enqueue(new TextEncoder().encode(
      `${cursor ? `id: ${cursor}\n` : ''}event: ${message.type}\ndata: ${JSON.stringify(message)}\n\n`));
    responses.push(response);
    return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
  };
  return { responses, of: (words) => responses.findLast(({ url }) => url.includes(words)) };
}

async function refuseSockets(count) {
  for (let i = 0; i < count; i++) {
    const before = sockets.length;
    await until(() => sockets.length > 0 && !sockets.at(-1).isCut);
    sockets.at(-1).isCut = true;
    sockets.at(-1).cut();
    if (i + 1 < count) await until(() => sockets.length > before);
  }
}

test('where no WebSocket can be opened, each stream is a response', async () => {
  const { responses, of } = playResponses();
  const { connection, states } = connect();
  const stop = new AbortController();
  const tea = read(connection.filter({ track: 'tea' })), milk = read(connection.filter({ track: 'milk' }, { signal: stop.signal }));
  await refuseSockets(2);
  await until(() => responses.length === 2);
  assert.deepEqual(states.map(({ name }) => name), ['connecting', 'waiting', 'connecting', 'live']);
  of('tea').say(post(1));
  of('milk').say(post(2));
  await until(() => tea.messages.length === 1 && milk.messages.length === 1);
  stop.abort();
  await until(() => of('milk').signal.aborted && milk.isOver);
  const later = read(connection.filter({ track: 'later' }));
  await until(() => of('later'));
  of('later').say({ type: 'disconnect', code: 'complete', reason: 'until is reached' }, at(3));
  await until(() => later.isOver);
  assert.deepEqual([later.error, tea.isOver], [undefined, false]);
  connection.close();
  await until(() => of('tea').signal.aborted);
});

test('without a WebSocket five streams are read at a time, and the state says how many wait', async () => {
  const { responses, of } = playResponses();
  delete globalThis.WebSocket;
  const { connection } = connect();
  const stop = new AbortController();
  read(connection.filter({ track: 'first' }, { signal: stop.signal }));
  for (let i = 2; i <= 7; i++) read(connection.filter({ track: `word${i}` }));
  await until(() => responses.length === 5 && connection.state.held === 2);
  stop.abort();
  await until(() => responses.length === 6);
  assert.ok(of('word6'));
  await until(() => connection.state.held === 1);
  of('word2').say({ type: 'disconnect', code: 'complete', reason: 'until is reached' }, at(3));
  await until(() => responses.length === 7);
  assert.deepEqual(connection.state, { name: 'live' });
  connection.close();
});

test('where there are no WebSockets at all, each stream is a response', async () => {
  const { responses, of } = playResponses();
  delete globalThis.WebSocket;
  const { connection } = connect();
  const tea = read(connection.filter({ track: 'tea' }));
  await until(() => responses.length === 1);
  of('tea').say(post(1));
  await until(() => tea.messages.length === 1);
});

test('where a response is cut, all come again with their cursors, on a WebSocket if there is one now', async () => {
  const { responses, of } = playResponses();
  const { connection } = connect();
  const tea = read(connection.filter({ track: 'tea' })), milk = read(connection.filter({ track: 'milk' }));
  await refuseSockets(2);
  await until(() => responses.length === 2);
  of('tea').say(post(1));
  of('milk').say(post(2));
  await until(() => tea.messages.length === 1 && milk.messages.length === 1);
  of('milk').controller.close();
  await until(() => sockets.length === 3);
  assert.equal(of('tea').signal.aborted, true);
  await refuseSockets(1);
  await until(() => responses.length === 4);
  assert.deepEqual(responses.slice(2).map(({ url }) => url.split('since=')[1]), [at(1), at(2)]);
  of('tea').controller.error(new TypeError('cut'));
  await until(() => sockets.length === 4);
  sockets[3].open();
  assert.deepEqual(sockets[3].opened.map(({ path }) => path.split('since=')[1]), [at(1), at(2)]);
  assert.equal(responses.length, 4);
});

test('over HTTP a page has room for its other requests', async () => {
  const { responses } = playResponses();
  const { connection } = connect();
  const streams = Array.from({ length: 7 }, (_, i) => read(connection.filter({ track: `word${i}` })));
  await refuseSockets(2);
  await until(() => responses.length === 5);
  responses[2].say({ type: 'disconnect', code: 'complete', reason: 'until is reached' }, at(3));
  await until(() => responses.length === 6);
  assert.deepEqual([streams[2].isOver, responses[5].url.includes('word5')], [true, true]);
});

test('a refused stream says where its rule is wrong', async () => {
  const { connection } = connect();
  const tea = read(connection.filter({ rule: 'tea (' }));
  await until(() => sockets.length === 1);
  sockets[0].open();
  sockets[0].say({ op: 'open', id: sockets[0].nameOf('tea'), error: { code: 'syntax', message: 'not closed', param: 'rule', at: 4 } });
  await until(() => tea.isOver);
  assert.ok(tea.error instanceof Refused);
  assert.deepEqual([tea.error.code, tea.error.reason, tea.error.param, tea.error.at], ['syntax', 'not closed', 'rule', 4]);
});

test('the connection stays while one stream follows another', async () => {
  const { connection } = connect();
  const stop = new AbortController();
  const tea = read(connection.filter({ track: 'tea' }, { signal: stop.signal }));
  await until(() => sockets.length === 1);
  sockets[0].open();
  sockets[0].answer();
  stop.abort();
  await until(() => tea.isOver);
  const milk = read(connection.filter({ track: 'milk' }));
  await until(() => sockets[0].opened.length === 2);
  sockets[0].say({ op: 'closed', id: sockets[0].nameOf('tea') });
  sockets[0].say({ op: 'opened', id: sockets[0].nameOf('milk') });
  sockets[0].say({ ...post(2), stream: sockets[0].nameOf('milk') });
  await until(() => milk.messages.length === 1);
  assert.equal(sockets.length, 1);
});

test('what was under way to a stream is not given to the one that comes in its place', async () => {
  const { connection } = connect();
  const stop = new AbortController();
  const first = read(connection.filter({ track: 'tea' }, { signal: stop.signal }));
  await until(() => sockets.length === 1);
  const [socket] = sockets;
  socket.open();
  socket.answer();
  stop.abort();
  await until(() => first.isOver);
  const second = read(connection.filter({ track: 'tea' }));
  await until(() => socket.opened.length === 2);
  const [{ id }, { id: again }] = socket.opened;
  assert.equal(again, id); // who asks the same has the same name
  socket.say({ ...post(1), stream: id });
  socket.say({ op: 'closed', id });
  socket.say({ op: 'opened', id });
  socket.say({ ...post(2), stream: id });
  await until(() => second.messages.length > 0);
  assert.deepEqual(second.messages, [2]);
});

test('the same may be asked for twice', async () => {
  const { connection } = connect();
  const both = [1, 2].map(() => read(connection.filter({ track: 'tea' })));
  await until(() => sockets.length === 1);
  sockets[0].open();
  sockets[0].answer();
  const names = sockets[0].opened.map(({ id }) => id);
  assert.equal(new Set(names).size, 2);
  for (const [i, name] of names.entries()) sockets[0].say({ ...post(i), stream: name });
  await until(() => both.every(({ messages }) => messages.length === 1));
});

test('of more than sixteen streams there is a second connection, with the same token', async () => {
  let count = 0;
  const { connection } = connect({ token: () => `token-${++count}` });
  for (let i = 0; i < 17; i++) read(connection.filter({ track: `word${i}` }));
  await until(() => sockets.length === 2);
  for (const socket of sockets) socket.open();
  assert.deepEqual(sockets.map(({ opened }) => opened.length), [16, 1]);
  assert.deepEqual(sockets.map(({ protocols }) => protocols[1]), ['bearer.token-1', 'bearer.token-1']);
});

// --- tabs ---

function tab(worker, options, token = 'a-token') {
  const states = [];
  const client = new SharedClient('http://a.example', worker, token, { ...AGAIN, onState: ({ name }) => states.push(name), ...options });
  left.push(() => { client.close(); worker.port.close(); });
  return { client, states };
}

test('tabs of one user share a connection, and what they ask alike', async () => {
  const { client } = tab(inPage()), { client: other } = tab(inPage());
  const tea = read(client.filter({ track: 'tea' }));
  await until(() => sockets.length === 1);
  sockets[0].open();
  sockets[0].answer();
  const name = sockets[0].nameOf('tea');
  sockets[0].say({ ...post(1), stream: name });
  await until(() => tea.messages.length === 1);
  const again = read(other.filter({ track: 'tea' })), milk = read(other.filter({ track: 'milk' }));
  await until(() => sockets[0].opened.length === 2);
  sockets[0].say({ op: 'opened', id: sockets[0].nameOf('milk') });
  sockets[0].say({ ...post(2), stream: name });
  await until(() => again.messages.length === 1);
  assert.deepEqual([tea.messages, again.messages, milk.messages], [[1, 2], [2], []]);
  client.close();
  await until(() => tea.isOver);
  assert.equal(sockets[0].heard.some(({ op, id }) => op === 'close' && id === name), false);
  other.close();
  await until(() => sockets[0].isClosed);
  assert.equal(sockets.length, 1);
});

test('a tab measures how long the server needs on the connection of all tabs', async () => {
  const { client } = tab(inPage());
  assert.equal(await client.roundTrip(), undefined); // it has nothing open
  read(client.filter({ track: 'tea' }));
  await until(() => sockets.length === 1);
  sockets[0].open();
  const trip = client.roundTrip();
  await until(() => sockets[0].heard.some(({ op }) => op === 'list'));
  sockets[0].say({ op: 'list', rules: [], streams: [] });
  assert.ok(await trip >= 0);
});

test('who is another has a connection of its own', async () => {
  for (const [token, options] of [['token-of-ada', {}], ['token-of-bob', {}], [() => 'token-3', { user: 'carol' }]]) {
    read(tab(inPage(), options, token).client.firehose());
  }
  await until(() => sockets.length === 3);
  assert.deepEqual(sockets.map(({ protocols }) => protocols[1]).sort(), ['bearer.token-3', 'bearer.token-of-ada', 'bearer.token-of-bob']);
});

test('a tab that comes later may have what was told before', async () => {
  const { client } = tab(inPage()), { client: other } = tab(inPage());
  const parameters = { bucket: '1s', since: '-5s' };
  const start = (second) => new Date(Date.UTC(2026, 10, 29, 12, 0, second)).toISOString();
  const counts = (second, posts, more) => ({ type: 'counts', start: start(second), posts, ...more });
  const first = read(client.counts(parameters));
  await until(() => sockets.length === 1);
  sockets[0].open();
  sockets[0].answer();
  for (const message of [counts(0, 9), counts(1, 1), counts(5, 2), counts(1, 7, { revision: 1 }), counts(6, 3), counts(7, 1, { partial: true })]) {
    sockets[0].say({ ...message, stream: sockets[0].opened[0].id });
  }
  await until(() => first.messages.length === 6);
  const given = [];
  for await (const { posts } of other.counts(parameters, { past: true })) if (given.push(posts) === 4) break;
  assert.deepEqual(given, [7, 2, 3, 1]);
});

test('events that were deleted are no past', async () => {
  const { client } = tab(inPage()), { client: other } = tab(inPage());
  const first = read(client.filter({ track: 'tea' }));
  await until(() => sockets.length === 1);
  sockets[0].open();
  sockets[0].answer();
  const messages = [...Array.from({ length: 70 }, (_, i) => post(i)), { id: at(70), type: 'delete', post: { id: at(69) } },
    { type: 'skipped', id: at(71), events: 2 }, { type: 'skipped', id: at(72), events: 3 }];
  for (const message of messages) sockets[0].say({ ...message, stream: sockets[0].opened[0].id });
  await until(() => first.messages.length === messages.length);
  const given = read(other.filter({ track: 'tea' }, { past: true }));
  await until(() => given.messages.length === 60);
  assert.deepEqual([given.messages[0], given.messages.at(-2), given.messages.at(-1)], [10, 68, 72]);
});

test('tabs are told how their connection fares, and may have it try again', async () => {
  const worker = inPage();
  const { client, states } = tab(worker);
  read(client.filter({ track: 'tea' }));
  await until(() => sockets.length === 1);
  sockets[0].open();
  sockets[0].say({ type: 'disconnect', code: 'token_revoked', reason: 'taken back' });
  await until(() => client.state.name === 'ended');
  assert.deepEqual([client.state.error.code, client.state.error.reason], ['token_revoked', 'taken back']);
  const { client: late } = tab(inPage());
  read(late.filter({ track: 'tea' }));
  await until(() => late.state.name === 'ended');
  client.reconnect();
  await until(() => sockets.length === 2);
  await until(() => states.slice(-2).join() === 'ended,connecting');
  client.close();
  const other = new SharedClient('http://a.example', worker, 'another-token', { ...AGAIN, onState: () => {} });
  left.push(() => other.close());
  read(other.filter({ track: 'tea' }));
  await until(() => sockets.length === 3);
  assert.equal(sockets[2].protocols[1], 'bearer.another-token');
});

test('a tab that is not told is thrown what the server says', async () => {
  const { client } = tab(inPage(), { onState: undefined });
  const tea = read(client.filter({ track: 'tea' }));
  await until(() => sockets.length === 1);
  sockets[0].open();
  sockets[0].say({ type: 'disconnect', code: 'ended', reason: 'by an operator' });
  await until(() => tea.isOver);
  assert.ok(tea.error instanceof Disconnected);
  assert.deepEqual([tea.error.code, tea.error.reason], ['ended', 'by an operator']);
  const refused = read(client.filter({ rule: '(' }));
  await until(() => sockets.length === 2);
  sockets[1].open();
  sockets[1].say({ op: 'open', id: sockets[1].opened[0].id, error: { code: 'syntax', message: 'not closed', param: 'rule', at: 1 } });
  await until(() => refused.isOver);
  assert.ok(refused.error instanceof Refused && refused.error.at === 1);
});

test('a token is asked of a tab that is there', async () => {
  let count = 0;
  const { client } = tab(inPage(), { user: 'ada' }, () => `token-${++count}`);
  read(client.filter({ track: 'tea' }));
  await until(() => sockets.length === 1);
  sockets[0].open();
  sockets[0].say({ type: 'warning', code: 'token_expiring', ms: 60_000 });
  await until(() => sockets[0].heard.some(({ op }) => op === 'token'));
  assert.deepEqual([sockets[0].protocols[1], sockets[0].heard.at(-1).token], ['bearer.token-1', 'token-2']);
});

for (const [name, asks] of [['asynchronous', (give) => async () => give()], ['plain', (give) => give]]) test(`a tab whose ${name} function has no token now is asked again`, async () => {
  let count = 0;
  const { client } = tab(inPage(), { user: `bob ${name}` }, asks(() => {
    if (++count < 3) throw new Error('not logged in');
    return 'token-3';
  }));
  read(client.filter({ track: 'tea' }));
  await until(() => sockets.length === 1);
  assert.equal(sockets[0].protocols[1], 'bearer.token-3');
});
