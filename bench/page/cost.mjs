// cost.mjs - how much CPU the page at / takes on the computer that shows it.
//
//     node bench/page/cost.mjs BUILD_FOLDER [POSTS_A_SECOND ...]
//
// A real sluiced and redis-server, a producer (publisher.mjs), and Chromium with one tab, 1440 by
// 900, for 20 seconds at each rate (0, 1000 and 10000 by default), and first with an empty page.
// Prints the main thread's time (CDP; it includes waiting for a core), the CPU of all processes of
// Chromium together (/proc), both in percent of one core, and what sluiced sent, compressed, in
// bytes a second.
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Servers } from '../../tests/browser/servers.mjs';
import { Publisher } from './publisher.mjs';

const build = path.resolve(process.argv[2] ?? 'build/dev');
const rates = process.argv.length > 3 ? process.argv.slice(3).map(Number) : [0, 1000, 10_000];
const { chromium } = createRequire(path.join(build, 'tests/browser/package.json'))('playwright-core');

const SECONDS = 20;
const WARM_MS = 5000;
const TICKS = 100; // in /proc, per second

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

// CPU seconds of a process and its descendants.
function cpuOf(root) {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
      return [{ pid: Number(pid), parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) }];
    } catch {
      return []; // it has ended
    }
  });
  const family = new Set([root]);
  for (let size = 0; size < family.size;) {
    size = family.size;
    for (const { pid, parent } of processes) if (family.has(parent)) family.add(pid);
  }
  return processes.filter(({ pid }) => family.has(pid)).reduce((all, { ticks }) => all + ticks, 0) / TICKS;
}

const servers = new Servers(build);
let browser;
let publisher;
try {
  await servers.start();
  const token = await servers.token();
  publisher = new Publisher(servers.socket);
  browser = await chromium.launchServer({ executablePath: process.env.SLUICE_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--disable-dev-shm-usage', ...(process.getuid() === 0 ? ['--no-sandbox'] : [])] });
  const client = await chromium.connect(browser.wsEndpoint());
  for (const rate of [null, ...rates]) { // null: an empty page
    if (rate > 0) publisher.start(rate);
    const context = await client.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await session.send('Performance.enable');
    if (rate !== null) {
      await page.goto(`${servers.url}/#token=${token}`);
      await page.locator('#state[data-state=live]').waitFor();
    }
    await sleep(WARM_MS);
    const look = async () => {
      const { metrics } = await session.send('Performance.getMetrics');
      const status = (await servers.status()).metrics;
      return { task: metrics.find(({ name }) => name === 'TaskDuration').value, cpu: cpuOf(browser.process().pid),
        bytes: status.sluice_delivered_bytes_total, events: status.sluice_events_received_total, at: Date.now() };
    };
    const before = await look();
    await sleep(SECONDS * 1000);
    const after = await look();
    const a = (name) => (after[name] - before[name]) / ((after.at - before.at) / 1000);
    const what = rate === null ? 'empty page' : `${rate} posts/s asked, ${Math.round(a('events'))} events/s came`;
    console.log(`${what}: main thread ${(a('task') * 100).toFixed(1)} %, `
      + `all of Chromium ${(a('cpu') * 100).toFixed(1)} %, ${(a('bytes') / 1000).toFixed(1)} kB/s`);
    if (process.env.SHOT) await page.screenshot({ path: `${process.env.SHOT}-${rate}.png` });
    await context.close();
    publisher.stop();
  }
} finally {
  publisher?.close();
  await browser?.close();
  await servers.stop();
}
