// run.mjs - the dashboard as people meet it: Chromium, a real sluiced, a real Redis.
//
//     node tests/browser/run.mjs BUILD_FOLDER [WORDS OF A TEST'S NAME]
//
// Tests wait for what they expect to see, never for time. Each test has a browser context of its
// own, and fails when the page wrote an error to the console or asked another host for something.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { Servers, foreignPost } from './servers.mjs';

const build = path.resolve(process.argv[2] ?? 'build/dev');
const wanted = process.argv.slice(3).join(' ');
const packages = createRequire(path.join(build, 'tests/browser/package.json'));
const { chromium } = packages('playwright-core');
const AXE = readFileSync(packages.resolve('axe-core/axe.min.js'), 'utf8');
const SHOTS = path.join(build, 'tests/browser/shots');
const PATIENCE_MS = 30_000 * Number(process.env.SLUICE_TEST_PATIENCE ?? 1);
const GONE = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|status of 503/;
const MOST_BYTES = 300_000; // of a page and all its parts, compressed

const servers = new Servers(build);
let browser;
let token;

// --- a page, watched ---

class Visit {
  static async open(address, { theme = 'light', viewport = { width: 1440, height: 900 } } = {}) {
    const visit = new Visit();
    visit.troubles = [];
    visit.bytes = 0;
    visit.context = await browser.newContext({ colorScheme: theme, viewport });
    visit.page = await visit.context.newPage();
    visit.page.setDefaultTimeout(PATIENCE_MS);
    const session = await visit.context.newCDPSession(visit.page);
    await session.send('Network.enable');
    session.on('Network.loadingFinished', ({ encodedDataLength }) => { visit.bytes += encodedDataLength; });
    visit.page.on('request', (request) => {
      if (!request.url().startsWith(`${servers.url}/`)) visit.troubles.push(`asked ${request.url()}`);
    });
    visit.page.on('pageerror', (error) => visit.troubles.push(error.stack));
    visit.page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) visit.troubles.push(message.text());
    });
    await visit.page.goto(servers.url + address);
    return visit;
  }

  // The dashboard, listening.
  static async listen(fragment = '', options = {}) {
    const visit = await Visit.open(`/#${fragment}&token=${token}`, options);
    await visit.isLive();
    return visit;
  }

  async isLive() {
    await this.page.locator('#state[data-state=live]').waitFor();
  }

  card(text) {
    return this.page.locator('.card', { hasText: text });
  }

  // Until the server has exactly this one stream.
  async streams(kind) {
    await until(async () => {
      const { metrics } = await servers.status();
      return metrics.sluice_streams === 1 && metrics.sluice_streams_by_kind[kind] === 1;
    }, `the only stream is ${kind}`);
    await this.isLive();
  }

  async text(selector) {
    return this.page.locator(selector).textContent();
  }

  async shows(selector, text) {
    await until(async () => (await this.text(selector)) === text, `${selector} shows ${text}`);
  }

  // What the tests caused on purpose, a connection that ends, is no trouble.
  forgive(pattern) {
    this.troubles = this.troubles.filter((trouble) => !pattern.test(trouble));
  }

  async close() {
    await this.context.close();
    assert.deepEqual(this.troubles, []);
    await until(async () => (await servers.status()).metrics.sluice_streams === 0, 'its stream is gone');
  }
}

async function until(condition, what) {
  const end = Date.now() + PATIENCE_MS;
  while (!await condition()) {
    if (Date.now() > end) throw new Error(`not within ${PATIENCE_MS / 1000} s: ${what}`);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

// --- the tests ---

mkdirSync(SHOTS, { recursive: true });

const tests = {
  async 'a post appears, marked up, and is struck out when it is deleted'() {
    const visit = await Visit.listen();
    const id = await servers.post('ada', 'Slides: https://talks.example/quiet-ui, by @grace #a11y', '--lang', 'en');
    const card = visit.card('Slides');
    await card.waitFor();
    assert.equal(await card.locator('.who').textContent(), 'Ada Lindqvist');
    assert.equal(await card.locator('.tag').textContent(), '#a11y');
    assert.equal(await card.locator('.name').textContent(), '@grace');
    assert.equal(await card.locator('a').getAttribute('href'), 'https://talks.example/quiet-ui');
    await visit.shows('#delivered', '1');
    await servers.sluice('delete', '--user', 'ada', id);
    await card.locator('.text del', { hasText: 'Slides' }).waitFor();
    await card.locator('.deleted').waitFor();
    await visit.shows('#delivered', '2');
    await visit.close();
  },

  async 'what has just been posted is there when the page opens, and counts for no rate'() {
    await servers.post('ada', 'Here already');
    await servers.sluice('delete', '--user', 'ada', await servers.post('ada', 'Gone already'));
    const visit = await Visit.listen();
    await visit.card('Here already').waitFor();
    assert.equal(await visit.card('Gone already').count(), 0);
    await visit.shows('#delivered', '0');
    await servers.post('ada', 'A live one');
    await visit.card('A live one').waitFor();
    await visit.shows('#delivered', '1');
    await visit.close();
  },

  async 'what a post says is text, in its own direction'() {
    const visit = await Visit.listen();
    await servers.post('ada', '<img src=x onerror=alert(1)><b>bold</b>');
    await servers.post('ada', '@grace صباح الخير من البحر', '--lang', 'ar');
    const arabic = visit.card('صباح');
    await arabic.waitFor();
    assert.equal(await arabic.locator('.text').evaluate((text) => getComputedStyle(text).direction), 'rtl');
    assert.equal(await arabic.locator('.text').getAttribute('lang'), 'ar');
    assert.equal(await visit.card('onerror').locator('.text').textContent(),
      '<img src=x onerror=alert(1)><b>bold</b>');
    await visit.close();
  },

  async 'a change of the filter takes effect at once'() {
    const visit = await Visit.listen();
    await visit.streams('firehose/sse');
    await visit.page.getByText('Filter', { exact: true }).click();
    await visit.page.getByLabel('Track').fill('tea');
    await visit.page.getByLabel('Track').press('Enter');
    await visit.streams('filter/sse');
    await servers.post('ada', 'all about coffee');
    await servers.post('ada', 'a cup of tea');
    await visit.card('a cup of tea').waitFor();
    assert.equal(await visit.card('coffee').count(), 0);
    await visit.page.getByLabel('Track').fill('coffee');
    await visit.page.getByLabel('Track').press('Enter');
    await until(async () => (await visit.text('#tail')).includes('--track coffee'), 'the command follows');
    await visit.streams('filter/sse');
    await servers.post('ada', 'more tea');
    await servers.post('ada', 'more coffee');
    await visit.card('more coffee').waitFor();
    assert.equal(await visit.card('more tea').count(), 0);
    await visit.close();
  },

  async 'a bad parameter is explained beside its field'() {
    const visit = await Visit.listen('stream=filter&track=tea');
    await visit.page.getByLabel('Rule').fill('cat OR');
    await visit.page.getByLabel('Rule').press('Enter');
    await visit.page.locator('#error-rule:not([hidden])').waitFor();
    assert.equal(await visit.page.getByLabel('Rule').getAttribute('aria-invalid'), 'true');
    await visit.page.locator('#state[data-state=refused]').waitFor();
    await visit.page.getByLabel('Rule').fill('');
    await visit.page.getByLabel('Rule').press('Enter');
    await visit.isLive();
    assert.equal(await visit.page.locator('#error-rule').isVisible(), false);
    visit.forgive(/status of 400/);
    await visit.close();
  },

  async 'a gateway that is restarted is found again, with nothing missing'() {
    const visit = await Visit.listen();
    await servers.post('ada', 'before it went');
    await visit.card('before it went').waitFor();
    await servers.stopGateway();
    await visit.page.locator('#state[data-state=waiting]').waitFor();
    await visit.page.getByText('The stream will go on where it stopped.').waitFor();
    for (let i = 1; i <= 7; i++) await servers.post('ada', `missed ${i}.`);
    await servers.startGateway();
    await servers.post('ada', 'after it came back');
    await visit.page.evaluate(() => document.querySelector('#try-now').click()); // it may be gone
    await visit.card('after it came back').waitFor();
    await visit.page.locator('#notice').waitFor({ state: 'hidden' });
    for (let i = 1; i <= 7; i++) assert.equal(await visit.card(`missed ${i}.`).count(), 1);
    assert.equal(await visit.page.locator('.card.note').count(), 0); // no gap was told
    await visit.shows('#delivered', '9');
    assert.ok(Number(await visit.text('#reconnects')) >= 1);
    visit.forgive(GONE);
    await visit.close();
  },

  async 'a pause misses nothing, either'() {
    const visit = await Visit.listen();
    await visit.streams('firehose/sse');
    await visit.page.getByRole('button', { name: 'Pause' }).click();
    await visit.page.locator('#state[data-state=paused]').waitFor();
    for (let i = 1; i <= 3; i++) await servers.post('ada', `while paused ${i}.`);
    await visit.page.getByRole('button', { name: 'Resume' }).click();
    await visit.card('while paused 3.').waitFor();
    assert.equal(await visit.card('while paused').count(), 3);
    await visit.page.getByRole('button', { name: 'Clear' }).click();
    await visit.shows('#delivered', '0');
    assert.equal(await visit.page.locator('.card').count(), 0);
    await visit.close();
  },

  async 'a box is drawn with the mouse, and another with the keys'() {
    const visit = await Visit.listen();
    const canvas = visit.page.locator('#map canvas.top');
    await visit.page.getByRole('button', { name: 'Draw a box' }).click();
    const { x, y, width, height } = await canvas.boundingBox();
    await visit.page.mouse.move(x + width * 0.6, y + height * 0.2);
    await visit.page.mouse.down();
    await visit.page.mouse.move(x + width * 0.95, y + height * 0.6, { steps: 4 });
    await visit.page.mouse.up();
    await visit.streams('filter/sse');
    const [west, south, east, north] = (await visit.page.getByLabel('Boxes', { exact: false }).first().inputValue())
      .split(',').map(Number);
    assert.ok(west > 30 && west < 45 && east > 150 && east < 170, `${west} ${east}`);
    assert.ok(south > -5 && south < 30 && north > 55 && north < 80, `${south} ${north}`);
    await servers.post('ada', 'in Lisbon', '--geo=-9.1,38.7');
    await servers.post('ada', 'in Tokyo', '--geo', '139.7,35.7');
    await visit.card('in Tokyo').waitFor();
    assert.equal(await visit.card('in Lisbon').count(), 0);

    await visit.page.getByRole('button', { name: 'Draw a box' }).click();
    for (const key of [...Array(6).fill('ArrowLeft'), 'Enter', ...Array(8).fill('ArrowUp'),
      ...Array(10).fill('ArrowLeft'), 'Enter']) await visit.page.keyboard.press(key);
    await visit.page.locator('.chip').nth(1).waitFor();
    await until(async () => (await visit.text('#curl')).split(',').length === 8, 'two boxes are asked for');
    await visit.page.locator('.chip').first().click();
    await visit.page.locator('.chip').nth(1).waitFor({ state: 'detached' });
    await visit.close();
  },

  async 'of very many posts a sample is shown, and said so'() {
    const visit = await Visit.listen();
    await visit.streams('firehose/sse');
    await visit.page.evaluate(() => {
      const sampling = document.querySelector('#sampling');
      globalThis.said = new Set();
      new MutationObserver(() => said.add(sampling.textContent)).observe(sampling, { childList: true });
      globalThis.announced = [];
      const live = document.querySelectorAll('[aria-live], [role=status], [role=alert], [role=log]');
      for (const region of live) {
        new MutationObserver(() => announced.push(region.textContent))
          .observe(region, { childList: true, subtree: true, characterData: true });
      }
    });
    for (let batch = 0; batch < 4; batch++) {
      await servers.publish(Array.from({ length: 1000 }, (_, i) => foreignPost(`post ${batch} ${i}`,
        { geo: { lon: (i % 360) - 180, lat: (i % 120) - 55 } })));
      await visit.shows('#delivered', ((batch + 1) * 1000).toLocaleString('en-US'));
    }
    await until(() => visit.page.evaluate(() => [...said].some((text) => /^Showing about 1 post in \d+$/.test(text))),
      'it is said that it is a sample');
    assert.ok(await visit.page.locator('.card').count() <= 120);
    await servers.post('ada', 'and a last one'); // the page still follows
    await until(async () => (await visit.text('#delivered')) === '4,001', 'the last one is delivered');
    assert.deepEqual(await visit.page.evaluate(() => announced), []); // nobody reads that aloud
    await visit.close();
  },

  async 'it is used with the keyboard alone, from the token on'() {
    const visit = await Visit.open('/');
    assert.equal(await visit.page.evaluate(() => document.activeElement.id), 'token');
    assert.equal(await visit.page.getByText('Copy the token').isDisabled(), true);
    await visit.page.keyboard.insertText(token);
    await visit.page.keyboard.press('Enter');
    await visit.streams('firehose/sse');
    for (let i = 0; i < 40 && await visit.page.evaluate(() => document.activeElement.id) !== 'go'; i++) {
      await visit.page.keyboard.press('Shift+Tab');
    }
    await visit.page.keyboard.press('Enter');
    await visit.page.locator('#state[data-state=paused]').waitFor();
    assert.equal(await visit.page.getByText('Copy the token').isDisabled(), false);
    assert.equal(new URL(visit.page.url()).hash.includes(token), false);
    await visit.close();
  },

  async 'a token in the address leaves it'() {
    const visit = await Visit.listen('stream=firehose&language=en');
    assert.equal(visit.page.url().includes(token), false);
    assert.equal(visit.page.url().includes('language=en'), true);
    await visit.page.reload();
    await visit.isLive(); // it is remembered in this tab
    await visit.close();
  },

  async 'a bad token is refused in words, and one that has expired in others'() {
    const visit = await Visit.open('/#token=a.b.c');
    await visit.page.locator('#error-token:not([hidden])', { hasText: 'not valid' }).waitFor();
    await visit.page.locator('#state[data-state=refused]').waitFor();
    await visit.page.getByLabel('Token').fill(servers.expiredToken());
    await visit.page.getByLabel('Token').press('Enter');
    await visit.page.locator('#error-token:not([hidden])', { hasText: 'has expired' }).waitFor();
    await visit.page.getByLabel('Token').fill('');
    await visit.page.getByLabel('Token').press('Tab');
    await visit.page.getByRole('heading', { name: 'A token first' }).waitFor();
    await isAccessible(visit.page);
    await visit.page.getByLabel('Token').fill(token);
    await visit.page.getByLabel('Token').press('Enter');
    await visit.isLive();
    assert.equal(await visit.page.locator('.error:visible').count(), 0);
    visit.forgive(/status of 401/);
    await visit.close();
  },

  async 'too many connections are explained, and tried again'() {
    await servers.stopGateway();
    await servers.startGateway('--max-connections-per-subject', '1');
    try {
      await connectsTwice();
    } finally {
      await servers.stopGateway();
      await servers.startGateway();
    }
  },

  async 'an address that is pasted into the tab takes effect'() {
    const visit = await Visit.listen();
    await visit.streams('firehose/sse');
    await visit.page.evaluate((fragment) => { location.hash = fragment; }, 'stream=filter&track=tea&types=post,follow');
    await visit.streams('filter/sse');
    assert.equal(await visit.page.getByLabel('Track').inputValue(), 'tea');
    assert.equal(await visit.page.getByLabel('deletions').isChecked(), false);
    assert.match(await visit.text('#tail'), /--track tea .*--types post,follow/s);
    await servers.post('ada', 'tea for the feed');
    await visit.card('tea for the feed').waitFor();
    await visit.page.locator('.skip').focus();
    await visit.page.keyboard.press('Enter');
    assert.equal(await visit.page.evaluate(() => document.activeElement.id), 'feed');
    assert.match(visit.page.url(), /track=tea/);
    await visit.close();
  },

  async 'who goes from post to post with the keys reads on undisturbed'() {
    const visit = await Visit.listen();
    for (const text of ['the first', 'the second']) await servers.post('ada', text);
    await visit.card('the second').waitFor();
    const focused = () => visit.page.evaluate(() => document.activeElement.textContent);
    await visit.page.locator('#feed').focus();
    await visit.page.keyboard.press('PageDown');
    assert.match(await focused(), /the second/);
    await visit.page.keyboard.press('PageDown');
    assert.match(await focused(), /the first/);
    await servers.post('ada', 'the third');
    await visit.page.getByRole('button', { name: '1 newer' }).waitFor();
    assert.equal(await visit.card('the third').count(), 0);
    await visit.page.keyboard.press('PageUp');
    await visit.page.keyboard.press('PageUp');
    await visit.card('the third').waitFor();
    await visit.close();
  },

  async 'on a phone there are posts, and a map at a touch'() {
    const visit = await Visit.listen('', { viewport: { width: 2560, height: 1300 } });
    await servers.publish(Array.from({ length: 40 }, (_, i) => foreignPost(`${i} ${'a long story '.repeat(20)}`)));
    await servers.post('ada', 'from far away', '--geo', '139.7,35.7');
    await visit.card('from far away').waitFor();
    for (const width of [1200, 820, 360]) { // a window that shrinks, a phone that is turned
      await visit.page.setViewportSize({ width, height: 740 });
      const [room, ...cards] = await visit.page.locator('.posts, .card').evaluateAll(
        (all) => all.map((one) => one.getBoundingClientRect().right));
      assert.ok(cards.length > 40 && Math.max(...cards) <= room + 0.5, `${width}: ${Math.max(...cards)} > ${room}`);
    }
    assert.equal(await visit.page.locator('#map').isVisible(), false);
    await visit.page.evaluate(() => scrollTo(0, 2000));
    await servers.post('ada', 'while somebody reads');
    const newer = visit.page.getByRole('button', { name: '1 newer' });
    await newer.click();
    await visit.card('while somebody reads').waitFor();
    await newer.waitFor({ state: 'hidden' });
    await visit.page.getByText('Map and chart').click();
    await visit.page.locator('#map.is-there').waitFor();
    assert.equal(await visit.card('from far away').isVisible(), false);
    await isAccessible(visit.page);
    const { scrollWidth, clientWidth } = await visit.page.evaluate(() => document.documentElement);
    assert.equal(scrollWidth, clientWidth, 'nothing sticks out');
    await visit.close();
  },

  async 'the commands beside the stream work in a terminal'() {
    const visit = await Visit.listen('stream=filter&track=tea%2C%20it%27s%20fine');
    const { spawn } = await import('node:child_process');
    for (const id of ['curl', 'tail']) {
      const command = await visit.text(`#${id}`);
      const child = spawn('bash', ['-c', command], { stdio: ['ignore', 'pipe', 'ignore'],
        env: { ...process.env, TOKEN: token, PATH: `${path.join(build, 'cli')}:${process.env.PATH}` } });
      await until(async () => (await servers.status()).metrics.sluice_streams === 2, `${id} listens`);
      const line = new Promise((resolve) => { child.stdout.once('data', (data) => resolve(data.toString())); });
      await servers.post('ada', 'it\'s a fine day');
      await servers.post('ada', `tea by ${id}`);
      assert.match(JSON.parse((await line).split('\n')[0]).post.text, /fine day|tea by/);
      child.kill();
      await until(async () => (await servers.status()).metrics.sluice_streams === 1, `${id} has gone`);
    }
    await visit.close();
  },

  async 'the status page shows what goes on'() {
    const live = await Visit.listen();
    const visit = await Visit.open('/status');
    await visit.isLive();
    await visit.shows('#streams', '1');
    assert.equal(await visit.text('#kinds tr:nth-child(3) td:nth-child(5)'), '1'); // firehose, SSE
    await visit.shows('#state-text', 'All well');
    await until(async () => /ms|µs/.test(await visit.text('#redis')), 'Redis is timed');
    const streams = visit.page.locator('#streams');
    await live.close();
    await until(async () => (await streams.textContent()) === '0', 'it is live');
    await servers.stopGateway();
    await visit.page.getByText(/No answer since .*: the numbers are of that time/).waitFor();
    await isAccessible(visit.page);
    await servers.startGateway();
    await visit.isLive();
    assert.equal(await visit.page.locator('#stale').isVisible(), false);
    visit.forgive(GONE);
    await visit.close();
  },

  async 'every page is accessible, on a desk and a phone, in both themes'() {
    const posts = [
      foreignPost('Four hours on the night train, and the dining car has real cups. ☕ #nighttrain',
        { lang: 'en', geo: { lon: 12.86, lat: 55.57 }, user: { id: '1', login: 'ada', name: 'Ada Lindqvist' } }),
      foreignPost('صباح الخير، البحر هادئ اليوم #الإسكندرية',
        { lang: 'ar', geo: { lon: 29.9, lat: 31.2 }, user: { id: '2', login: 'layla', name: 'ليلى' } }),
      foreignPost('Сегодня первый снег! https://example.org/snow', { lang: 'ru',
        place: { name: 'Новосибирск', country: 'RU', bbox: [82.7, 54.8, 83.2, 55.2] },
        user: { id: '3', login: 'masha', name: 'Маша' } }),
      foreignPost('北京的秋天真好看 #北京#', { lang: 'zh', geo: { lon: 116.4, lat: 39.9 },
        user: { id: '4', login: 'laowang', name: '老王' } }),
      foreignPost('This one is taken back in a moment.', { lang: 'en', user: { id: '5', login: 'tom', name: 'Tom Okafor' } }),
    ];
    const deletion = { id: '900000', type: 'delete', at: new Date().toISOString(),
      post: { id: posts[4].post.id, user: { id: '5' } } };
    const sizes = { desk: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
    const live = await Visit.listen('stream=filter&track=train,snow,back,%D8%A7%D9%84%D8%A8%D8%AD%D8%B1&locations=70%2C10%2C150%2C56');
    await servers.publish([...posts, deletion]);
    await live.card('dining car').waitFor();
    await live.page.locator('.card.is-deleted').waitFor();
    const status = await Visit.open('/status');
    await status.isLive();
    await status.shows('#streams', '1');
    for (const [name, { page }] of Object.entries({ live, status })) {
      for (const [size, viewport] of Object.entries(sizes)) {
        await page.setViewportSize(viewport);
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme });
          await isAccessible(page);
          await page.screenshot({ path: path.join(SHOTS, `${name}-${size}-${colorScheme}.png`), fullPage: size === 'phone' });
        }
      }
    }
    await live.close();
    await status.close();
  },

  async 'every page is light'() {
    for (const page of ['/', '/status']) {
      const visit = await Visit.open(page);
      await visit.page.locator(page === '/' ? '#map.is-there' : '#state[data-state=live]').waitFor();
      await until(() => visit.bytes > 10_000, 'the debugger has told what was loaded');
      assert.ok(visit.bytes < MOST_BYTES, `${page}: ${visit.bytes} bytes`);
      console.log(`  ${page}: ${visit.bytes} bytes`);
      await visit.close();
    }
  },
};

async function connectsTwice() {
  const first = await Visit.listen();
  const second = await Visit.open(`/#token=${token}`);
  await second.page.locator('#notice').waitFor();
  assert.match(await second.text('#notice-text'), /^This token's subject has as many streams as it may\./);
  await until(async () => /^Next try in \d+ s$/.test(await second.text('#state-text')), 'it counts down');
  await isAccessible(second.page);
  await first.context.close(); // the other may take its place at once
  await second.page.evaluate(() => document.querySelector('#try-now').click()); // it may be gone
  await second.isLive();
  second.forgive(/status of 429/);
  await second.close();
}

async function isAccessible(page) {
  // Evaluated by the debugger, so the page's Content-Security-Policy stays as it is.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`), []);
}

// --- all of them ---

let failed = 0;
try {
  await servers.start();
  token = await servers.token();
  await servers.sluice('user', 'add', 'ada', '--name', 'Ada Lindqvist');
  browser = await chromium.launch({
    executablePath: process.env.SLUICE_CHROMIUM ?? '/usr/bin/chromium',
    // Containers may have a small /dev/shm, and root has no sandbox.
    args: ['--disable-dev-shm-usage', ...(process.getuid() === 0 ? ['--no-sandbox'] : [])],
  });
  for (const [name, test] of Object.entries(tests)) {
    if (!name.includes(wanted)) continue;
    const begun = Date.now();
    try {
      await test();
      console.log(`ok: ${name} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed++;
      console.log(`FAILED: ${name}\n${error.stack}\n`);
      for (const context of browser.contexts()) await context.close();
    }
  }
} finally {
  await browser?.close();
  await servers.stop();
}
console.log(failed ? `${failed} failed` : 'all passed');
process.exitCode = failed ? 1 : 0;
