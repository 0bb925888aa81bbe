// first.mjs - how long the page at / takes until it shows something.
//
//     node bench/page/first.mjs BUILD_FOLDER [POSTS_IN_THE_LOG ...]
//
// A real sluiced and redis-server with that many posts of the last minutes in the log (1000 and
// 100000 by default), and Chromium, 1440 by 900: ten loads each, without a cache. Prints
// milliseconds since the navigation began, median and worst: the first paint, the first number, the
// first post, and when the past is complete.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import { Servers } from '../../tests/browser/servers.mjs';
import { writePosts } from './posts.mjs';

const build = path.resolve(process.argv[2] ?? 'build/dev');
const amounts = process.argv.length > 3 ? process.argv.slice(3).map(Number) : [1000, 100_000];
const { chromium } = createRequire(path.join(build, 'tests/browser/package.json'))('playwright-core');
const run = promisify(execFile);

const LOADS = 10;
const PER_SECOND = 2000; // by which the log is written

// Runs in the page, before its own scripts: records when each thing was first there.
function watch() {
  globalThis.first = {};
  const text = (selector) => document.querySelector(selector)?.textContent ?? '';
  const signs = {
    number: () => /\d/.test(text('#rate')),
    post: () => document.querySelector('.row') !== null,
    past: () => / in 15 min/.test(text('#about')) && !/loading/.test(text('#about')) && text('#state-text').startsWith('Live'),
  };
  new MutationObserver(() => {
    for (const [name, isThere] of Object.entries(signs)) {
      if (!(name in globalThis.first) && isThere()) globalThis.first[name] = performance.now();
    }
  }).observe(document, { childList: true, subtree: true, characterData: true });
}

async function load(browser, address) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  try {
    const page = await context.newPage();
    await page.addInitScript(watch);
    await page.goto(address);
    await page.waitForFunction(() => Object.keys(globalThis.first).length === 3);
    return await page.evaluate(() => ({ paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime, ...globalThis.first }));
  } finally {
    await context.close();
  }
}

for (const amount of amounts) {
  const servers = new Servers(build);
  let browser;
  try {
    await servers.start();
    writePosts(servers.at('posts'), amount);
    await run(path.join(build, 'cli/sluice'), ['replay', '--rate', String(PER_SECOND), servers.at('posts')],
      { env: { ...process.env, SLUICE_REDIS: servers.redisUrl } });
    browser = await chromium.launch({ executablePath: process.env.SLUICE_CHROMIUM ?? '/usr/bin/chromium',
      args: ['--disable-dev-shm-usage', ...(process.getuid() === 0 ? ['--no-sandbox'] : [])] });
    const address = `${servers.url}/#token=${await servers.token()}`;
    await load(browser, address); // the browser itself starts, too
    const loads = [];
    for (let i = 0; i < LOADS; i++) loads.push(await load(browser, address));
    const told = Object.entries({ paint: 'first paint', number: 'first number', post: 'first post', past: 'past is whole' }).map(([name, words]) => {
      const times = loads.map((one) => Math.round(one[name])).sort((a, b) => a - b);
      return `${words} ${times[LOADS / 2]} (${times.at(-1)})`;
    });
    console.log(`${amount} posts in the log: ${told.join(', ')} ms`);
  } finally {
    await browser?.close();
    await servers.stop();
  }
}
