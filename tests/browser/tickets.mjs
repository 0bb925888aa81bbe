// tickets.mjs - pages in Chromium that open streams with tickets, and reconnect after the server
// was unavailable.
//
//     node tests/browser/tickets.mjs BUILD_FOLDER
//
// The page that requests a new ticket is exactly the one shown in docs/auth.md.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { Servers } from './servers.mjs';

const build = path.resolve(process.argv[2] ?? 'build/dev');
const { chromium } = createRequire(path.join(build, 'tests/browser/package.json'))('playwright-core');
const DEADLINE_MS = 30_000 * Number(process.env.SLUICE_TEST_TIMEOUT_FACTOR ?? 1);
const TEA = '/v1/stream/filter?track=tea';
const GUIDE = readFileSync(new URL('../../docs/auth.md', import.meta.url), 'utf8');
const RECIPE = GUIDE.slice(GUIDE.indexOf("    const path = '/v1/stream"), GUIDE.indexOf('**A cookie**, with'));

const servers = new Servers(build);
let browser;

async function until(condition, what) {
  const deadline = Date.now() + DEADLINE_MS;
  while (!await condition()) {
    if (Date.now() > deadline) throw new Error(`not within ${DEADLINE_MS} ms: ${what()}\n${servers.log()}`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

// A page, and what its streams have received.
class Visit {
  static async open(url) {
    const visit = new Visit();
    visit.shown = [];
    visit.opened = visit.tickets = 0;
    visit.context = await browser.newContext();
    visit.page = await visit.context.newPage();
    await visit.page.exposeFunction('tellShown', (text) => { visit.shown.push(text); });
    await visit.page.exposeFunction('tellOpened', () => { visit.opened++; });
    await visit.page.exposeFunction('askTicket', async (wanted) => { // the page's own server has the token
      visit.tickets++;
      const answer = await fetch(`${servers.url}/v1/tickets`, { method: 'POST', body: JSON.stringify({ path: wanted }),
        headers: { Authorization: `Bearer ${await servers.token()}`, 'Content-Type': 'application/json' } });
      if (answer.status !== 200) throw new Error(`a ticket: ${answer.status}`);
      return (await answer.json()).ticket;
    });
    await visit.page.goto(url);
    await visit.page.evaluate(() => {
      globalThis.newTicket = (wanted) => globalThis.askTicket(wanted);
      globalThis.show = ({ post }) => { globalThis.tellShown(post.text); };
      globalThis.opened = () => { globalThis.tellOpened(); };
    });
    return visit;
  }

  // Opens a single EventSource, without code to reconnect it.
  async listen(url, credentials = false) {
    await this.page.evaluate(async ([address, target, withCredentials]) => {
      const ticket = await globalThis.newTicket(target);
      const source = new EventSource(`${address}${target}&ticket=${ticket}`, { withCredentials });
      source.addEventListener('open', globalThis.opened);
      source.addEventListener('post', ({ data }) => globalThis.show(JSON.parse(data)));
      globalThis.source = source;
    }, [url, TEA, credentials]);
  }

  state() {
    return this.page.evaluate(() => globalThis.source.readyState);
  }

  async isOpen(times) {
    await until(() => this.opened === times, () => `opened ${this.opened} times of ${times}`);
  }

  async has(...texts) {
    await until(() => this.shown.length >= texts.length, () => `it has ${this.shown}`);
    assert.deepEqual(this.shown, texts);
  }

  async close() {
    await this.context.close();
  }
}

const post = (text) => servers.post('ada', text);

// Stopped long enough that something happens meanwhile.
async function restart(...options) {
  await servers.stopGateway();
  await post('tea while nobody served');
  await servers.startGateway(...options);
}

const tests = {
  async 'an EventSource comes back by its cookie, and has lost nothing'() {
    await restart('--session-cookie', 'on');
    const visit = await Visit.open(`${servers.url}/status`);
    await visit.listen('');
    await visit.isOpen(1);
    await post('tea before');
    await visit.has('tea before');
    await restart('--session-cookie', 'on');
    await visit.isOpen(2);
    await post('tea after');
    await visit.has('tea before', 'tea while nobody served', 'tea after');
    assert.equal(visit.tickets, 1);
    const [cookie] = await visit.context.cookies();
    assert.match(cookie.name, /^sluice_/);
    assert.deepEqual([cookie.httpOnly, cookie.secure, cookie.sameSite, cookie.path], [true, true, 'Strict', '/v1/stream']);
    assert.equal(await visit.page.evaluate(() => document.cookie), '');
    await visit.close();
  },

  async 'without cookies it gets 401, and the page asks anew'() {
    await restart();
    const visit = await Visit.open(`${servers.url}/status`);
    await visit.page.evaluate(`(() => { ${RECIPE} })()`);
    await visit.isOpen(1);
    await post('tea before');
    await visit.has('tea before');
    await restart();
    await visit.isOpen(2);
    await post('tea after');
    await visit.has('tea before', 'tea while nobody served', 'tea after');
    assert.equal(visit.tickets, 2);
    assert.deepEqual(await visit.context.cookies(), []);
    await visit.close();
  },

  async 'a page of another origin has a cookie where it is named, and sends credentials'() {
    const host = http.createServer((request, response) => {
      response.setHeader('Content-Type', 'text/html');
      response.end('<!doctype html><title>A page</title>');
    }).listen(0, '127.0.0.1');
    host.unref();
    await once(host, 'listening');
    const origin = `http://127.0.0.1:${host.address().port}`;
    const options = ['--session-cookie', 'on', '--allow-origin', origin];
    await restart(...options);
    const named = await Visit.open(origin);
    const bare = await Visit.open(origin);
    await named.listen(servers.url, true);
    await bare.listen(servers.url);
    await named.isOpen(1);
    await bare.isOpen(1);
    assert.equal((await named.context.cookies()).length, 1);
    assert.equal((await bare.context.cookies()).length, 0);
    await restart(...options);
    await named.isOpen(2);
    await named.has('tea while nobody served');
    await until(async () => await bare.state() === 2, () => 'the one without credentials is closed');
    await named.close();
    await bare.close();
  },
};

let failed = 0;
try {
  await servers.start();
  await servers.sluice('user', 'add', 'ada');
  browser = await chromium.launch({
    executablePath: process.env.SLUICE_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--disable-dev-shm-usage', ...(process.getuid() === 0 ? ['--no-sandbox'] : [])],
  });
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      console.log(`ok - ${name}`);
    } catch (error) {
      failed++;
      console.log(`not ok - ${name}\n${error.stack}`);
    }
  }
} finally {
  await browser?.close();
  await servers.stop();
}
process.exitCode = failed ? 1 : 0;
