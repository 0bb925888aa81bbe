// run.mjs - the dashboard in Chromium, with a real sluiced and a real Redis.
//
//     node tests/browser/run.mjs BUILD_FOLDER [WORDS OF A TEST'S NAME]
//
// Tests wait for what they expect to see, never for time. Each test has its own browser context,
// and fails if the page wrote an error to the console or sent a request to another host.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { Servers } from './servers.mjs';
import { stateTests } from './states.mjs';
import { statusTests } from './status.mjs';

const build = path.resolve(process.argv[2] ?? 'build/dev');
const wanted = process.argv.slice(3).join(' ');
const packages = createRequire(path.join(build, 'tests/browser/package.json'));
const { chromium } = packages('playwright-core');
const AXE = readFileSync(packages.resolve('axe-core/axe.min.js'), 'utf8');
const SHOTS = path.join(build, 'tests/browser/shots');
const DEADLINE_MS = 30_000 * Number(process.env.SLUICE_TEST_TIMEOUT_FACTOR ?? 1);
const GONE = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|status of 503|WebSocket connection to/;
const MOST_BYTES = 150_000; // of a page and all its parts, compressed

const servers = new Servers(build);
let browser;
let token;

// --- a page, monitored ---

class Visit {
  static async open(address, { theme = 'light', viewport = { width: 1440, height: 900 }, isPhone = false } = {}) {
    const visit = new Visit();
    visit.troubles = [];
    visit.bytes = 0;
    visit.context = await browser.newContext({ colorScheme: theme, viewport, hasTouch: isPhone, isMobile: isPhone });
    visit.page = await visit.context.newPage();
    visit.page.setDefaultTimeout(DEADLINE_MS);
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

  // Opens the dashboard, and waits until it is live and has its past.
  static async listen(fragment = '', options = {}) {
    const visit = await Visit.open(`/#${fragment}&token=${token}`, options);
    await visit.isLive();
    return visit;
  }

  async isLive() {
    await this.page.locator('#state[data-state=live]').waitFor();
  }

  row(text) {
    return this.page.locator('.row', { hasText: text });
  }

  // Types a query and Enter; resolves when it is shown.
  async ask(question, keys = 'Enter') {
    await this.page.locator('#question').fill(question);
    await this.page.locator('#question').press(keys);
  }

  // Waits until the numbers of the query are these.
  async tells(text) {
    await until(async () => (await this.text('#about')).endsWith(text), `it says ${text}`);
  }

  async text(selector) {
    return this.page.locator(selector).textContent();
  }

  async shows(selector, text) {
    await until(async () => (await this.text(selector)) === text, `${selector} shows ${text}`);
  }

  // Errors that a test caused deliberately, such as a closed connection, are ignored.
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
  const end = Date.now() + DEADLINE_MS;
  while (!await condition()) {
    if (Date.now() > end) throw new Error(`not within ${DEADLINE_MS / 1000} s: ${what}`);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

// --- the tests ---

mkdirSync(SHOTS, { recursive: true });

const tests = {
  async 'a post appears, marked up, and is struck out when it is deleted'() {
    const visit = await Visit.listen();
    const id = await servers.post('ada', 'Slides: https://talks.example/quiet-ui, by @grace #a11y', '--lang', 'en');
    const row = visit.row('Slides');
    await row.waitFor();
    assert.equal(await row.locator('.who').textContent(), 'Ada Lindqvist');
    assert.equal(await row.locator('.tag').textContent(), '#a11y');
    assert.equal(await row.locator('.name').textContent(), '@grace');
    assert.equal(await row.locator('a').getAttribute('href'), 'https://talks.example/quiet-ui');
    await servers.sluice('delete', '--user', 'ada', id);
    await row.locator('.text del', { hasText: 'Slides' }).waitFor();
    await row.locator('.deleted').waitFor();
    await visit.close();
  },

  async 'the past is there when the page opens, and goes on without a seam'() {
    for (let i = 0; i < 3; i++) await servers.post('ada', `quokka ${i}`, '--lang', 'en');
    await servers.sluice('delete', '--user', 'ada', await servers.post('ada', 'a quokka, gone already'));
    const visit = await Visit.listen('a=quokka&range=15m');
    await visit.tells('4 posts in 15 min · 1 deleted');
    await until(async () => await visit.row('quokka').count() === 3, 'the posts are there, too');
    for (let i = 3; i < 5; i++) await servers.post('ada', `quokka ${i}`, '--lang', 'ja');
    await visit.tells('6 posts in 15 min · 1 deleted');
    await visit.row('quokka 4').waitFor();
    await until(async () => (await visit.page.locator('#languages').innerText()).replace(/\s+/g, ' ') === 'English 3 · 50% Japanese 2 · 33% unspecified 1 · 17%',
      'languages are counted, too');
    const { counts } = await (await fetch(`${servers.url}/v1/counts?rule=quokka&bucket=1s&since=-15m`, { headers: { Authorization: `Bearer ${token}` } })).json();
    assert.equal(counts.reduce((all, { posts }) => all + posts, 0), 6); // the server counts the same
    await visit.close();
  },

  async 'what a post says is text, in its own direction'() {
    const visit = await Visit.listen();
    await servers.post('ada', '<img src=x onerror=alert(1)><b>bold</b>');
    await servers.post('ada', '@grace صباح الخير من البحر', '--lang', 'ar');
    const arabic = visit.row('صباح');
    await arabic.waitFor();
    assert.equal(await arabic.locator('.text').evaluate((text) => getComputedStyle(text).direction), 'rtl');
    assert.equal(await arabic.locator('.text').getAttribute('lang'), 'ar');
    assert.equal(await visit.row('onerror').locator('.text').textContent(), '<img src=x onerror=alert(1)><b>bold</b>');
    await visit.close();
  },

  async 'another question takes effect at once, and is in the address'() {
    const visit = await Visit.listen();
    await servers.post('ada', 'all about coffee');
    await servers.post('ada', 'a cup of tea');
    await visit.row('all about coffee').waitFor();
    await visit.page.keyboard.press('/');
    await visit.page.keyboard.type('tea');
    await visit.page.keyboard.press('Enter');
    await visit.row('all about coffee').waitFor({ state: 'detached' });
    await visit.row('a cup of tea').waitFor();
    await until(() => visit.page.url().includes('#a=tea'), 'the address says it');
    await servers.post('ada', 'more coffee');
    await servers.post('ada', 'more tea');
    await visit.row('more tea').waitFor();
    assert.equal(await visit.row('more coffee').count(), 0);
    await visit.close();
  },

  async 'a rule that is refused leaves what is shown, and says where it is wrong'() {
    await servers.post('ada', 'a wallaby');
    const visit = await Visit.listen('a=wallaby&range=15m');
    await visit.row('a wallaby').waitFor();
    await visit.ask('tea colour:red');
    await visit.page.locator('#error:not([hidden])').waitFor();
    assert.equal(await visit.text('#error-text'), "Unknown operator 'colour:'. To look for such a word, quote it.");
    assert.equal(await visit.text('#error-place'), 'tea colour:red');
    assert.equal(await visit.text('#error-place mark'), 'c');
    assert.equal(await visit.page.locator('#question').getAttribute('aria-invalid'), 'true');
    const colours = await visit.page.evaluate(() => ['#question', '#error-text'].map((one) => getComputedStyle(document.querySelector(one)))
      .map((style, i) => (i === 0 ? style.borderColor : style.color)));
    assert.equal(colours[0], colours[1], 'the field is red');
    assert.equal(await visit.row('a wallaby').count(), 1);
    assert.match(visit.page.url(), /#a=wallaby/);
    await isAccessible(visit.page);
    await visit.ask('wallaby OR tea');
    await visit.page.locator('#error').waitFor({ state: 'hidden' });
    visit.forgive(/status of 400/);
    await visit.close();
  },

  async 'who types is told what is wrong so far, and types on undisturbed'() {
    const visit = await Visit.listen('a=&range=5m');
    const field = visit.page.locator('#question');
    await field.focus();
    await visit.page.keyboard.type('lng:en "night');
    await visit.page.locator('#error-text', { hasText: 'did you mean lang:?' }).waitFor();
    await visit.page.keyboard.type(' train"');
    assert.equal(await field.inputValue(), 'lng:en "night train"');
    await visit.page.keyboard.press('Home');
    await visit.page.keyboard.press('ArrowRight');
    await visit.page.keyboard.type('a');
    await visit.page.locator('#error').waitFor({ state: 'hidden' });
    assert.equal(await field.inputValue(), 'lang:en "night train"');
    await visit.ask('tea colour:red');
    await visit.page.locator('#error:not([hidden])').waitFor();
    await visit.page.locator('#ranges').getByText('15 min').click(); // which shows another question than the refused one
    await visit.page.locator('#error').waitFor({ state: 'hidden' });
    assert.equal(await field.inputValue(), '');
    visit.forgive(/status of 400/);
    await visit.close();
  },

  async 'what is typed is estimated, and what stands in the way is named'() {
    // Before the gateway restarts: numbers from before that come from the log, as a sample that may
    // lack three posts.
    for (let i = 0; i < 3; i++) await servers.post('ada', 'a chuditch', '--lang', 'en');
    const visit = await Visit.listen('a=&range=15m');
    await visit.page.locator('#question').fill('chuditch OR nobodys');
    await visit.page.locator('#estimate', { hasText: 'chuditch 3' }).waitFor();
    assert.equal(await visit.text('#estimate .is-none'), 'nobodys 0 (!)');
    await visit.page.locator('#examples .row', { hasText: 'a chuditch' }).first().waitFor();
    await isAccessible(visit.page);
    await visit.ask('chuditch lang:ga');
    await visit.page.locator('#examples').waitFor({ state: 'hidden' });
    await visit.page.getByRole('button', { name: 'Without lang:ga: 3 in 10 min' }).click();
    await visit.row('a chuditch').first().waitFor();
    assert.equal(await visit.page.locator('#question').inputValue(), 'chuditch');
    await visit.close();
  },

  async 'a gateway that is away leaves a hole, which is filled when it is back'() {
    const visit = await Visit.listen('a=numbat&range=5m');
    await visit.page.locator('#as-table').click();
    const table = visit.page.locator('#timeline-table');
    const row = () => table.locator('td').first().textContent();
    await until(async () => /^0 /.test(await row()), 'it is live');
    await servers.post('ada', 'a numbat before it went');
    await visit.tells('1 post in 5 min');
    await servers.stopGateway();
    await visit.page.locator('#state[data-state=waiting]').waitFor();
    await visit.page.getByText(/No answer for \d+ s/).waitFor();
    await until(async () => /incomplete|unknown/.test(await row()), 'unknown is no zero');
    assert.equal(await visit.page.locator('.figure.is-old').count(), 1);
    for (let i = 1; i <= 7; i++) await servers.post('ada', `numbat ${i}.`);
    await servers.startGateway();
    await visit.page.evaluate(() => document.querySelector('#try-now').click()); // it may have disappeared
    await visit.tells('8 posts in 5 min');
    await visit.page.locator('#notice').waitFor({ state: 'hidden' });
    assert.doesNotMatch(await table.textContent(), /incomplete|unknown/);
    await until(async () => await visit.row(/numbat \d\./).count() > 0, 'posts are shown again');
    assert.equal(await visit.page.locator('.row.note').count(), 0); // no gap was shown
    visit.forgive(GONE);
    await visit.close();
  },

  async 'a pause holds everything, and nothing is missing after it'() {
    const visit = await Visit.listen('a=bilby&range=15m');
    await visit.tells('0 posts in 15 min');
    await visit.page.keyboard.press('Space');
    await visit.page.locator('#state[data-state=paused]').waitFor();
    for (let i = 1; i <= 3; i++) await servers.post('ada', `bilby ${i}.`);
    assert.equal(await visit.row('bilby').count(), 0);
    await visit.page.getByRole('button', { name: 'Resume' }).click();
    await visit.row('bilby 3.').waitFor();
    assert.equal(await visit.row('bilby').count(), 3);
    await visit.tells('3 posts in 15 min');
    await visit.close();
  },

  async 'a box is drawn with the mouse, and another with the keys'() {
    const visit = await Visit.listen();
    const canvas = visit.page.locator('#map canvas.top');
    await visit.page.getByRole('button', { name: 'Draw a box' }).click();
    await canvas.scrollIntoViewIfNeeded();
    const { x, y, width, height } = await canvas.boundingBox();
    await visit.page.mouse.move(x + width * 0.6, y + height * 0.2);
    await visit.page.mouse.down();
    await visit.page.mouse.move(x + width * 0.95, y + height * 0.6, { steps: 4 });
    await visit.page.mouse.up();
    const box = async () => /\[(.*)\]/.exec(await visit.page.locator('#question').inputValue())?.[1].split(' ').map(Number);
    await until(box, 'the question has it');
    const [west, south, east, north] = await box();
    assert.ok(west > 30 && west < 45 && east > 150 && east < 170, `${west} ${east}`);
    assert.ok(south > -5 && south < 30 && north > 55 && north < 80, `${south} ${north}`);
    await servers.post('ada', 'in Lisbon', '--geo=-9.1,38.7');
    await servers.post('ada', 'in Tokyo', '--geo', '139.7,35.7');
    await visit.row('in Tokyo').waitFor();
    assert.equal(await visit.row('in Lisbon').count(), 0);
    await until(async () => /^1 of 1 have a place$/.test(await visit.text('#placed')), 'the map counts it');

    await visit.page.getByRole('button', { name: 'Draw a box' }).click();
    for (const key of [...Array(6).fill('ArrowLeft'), 'Enter', ...Array(8).fill('ArrowUp'),
      ...Array(10).fill('ArrowLeft'), 'Enter']) await visit.page.keyboard.press(key);
    await until(async () => (await box())?.[0] !== west, 'the new one is asked for instead');
    await visit.row('in Tokyo').waitFor({ state: 'detached' });
    await visit.close();
  },

  async 'of very many posts a few are shown, and how many are not'() {
    const visit = await Visit.listen();
    await visit.page.evaluate(() => {
      globalThis.announced = [];
      for (const region of document.querySelectorAll('[aria-live], [role=status], [role=alert], [role=log]')) {
        new MutationObserver(() => announced.push(region.textContent))
          .observe(region, { childList: true, subtree: true, characterData: true });
      }
    });
    const first = Date.now();
    await Promise.all(Array.from({ length: 40 }, (_, i) => servers.post('ada', `a thylacine ${i}`)));
    await until(async () => /^\+\d+ not shown$/.test(await visit.text('#skipped')), 'it is said');
    const seconds = (Date.now() - first) / 1000 + 1;
    assert.ok(await visit.row('a thylacine').count() <= 2 * seconds, 'two of a second');
    assert.ok(await visit.page.locator('.row').count() <= 60);
    assert.deepEqual(await visit.page.evaluate(() => announced), []); // screen readers do not announce it
    await visit.close();
  },

  async 'it is used with the keyboard alone, from the token on'() {
    const visit = await Visit.open('/');
    assert.equal(await visit.page.evaluate(() => document.activeElement.id), 'token');
    assert.equal(await visit.page.getByText('Copy the token').isDisabled(), true);
    await isAccessible(visit.page);
    await visit.page.keyboard.insertText(token);
    await visit.page.keyboard.press('Enter');
    await visit.isLive();
    assert.equal(await visit.page.locator('dialog[open]').count(), 0);
    await visit.page.keyboard.press('?');
    await visit.page.locator('#keys[open]').waitFor();
    await isAccessible(visit.page);
    await visit.page.keyboard.press('Escape');
    await visit.page.keyboard.press('t');
    await visit.page.locator('#timeline-table').waitFor();
    await visit.page.keyboard.press('Escape');
    await visit.page.locator('#timeline-table').waitFor({ state: 'hidden' });
    await visit.page.keyboard.press('Space');
    await visit.page.locator('#state[data-state=paused]').waitFor();
    assert.equal(new URL(visit.page.url()).hash.includes(token), false);
    await visit.close();
  },

  async 'questions are compared, each with a colour, and the numbers say which is shown'() {
    await servers.post('ada', 'a dunnart');
    await servers.post('ada', 'a potoroo');
    const visit = await Visit.listen('range=15m&a=dunnart');
    await visit.row('a dunnart').waitFor();
    await visit.ask('potoroo', 'Shift+Enter');
    await visit.row('a potoroo').waitFor();
    await visit.ask('dunnart OR potoroo', 'Shift+Enter');
    await until(async () => /2 posts in 15 min/.test(await visit.text('#about')), 'the third is counted');
    await visit.ask('nobody', 'Shift+Enter');
    await until(async () => await visit.page.locator('.chip').count() === 4, 'four chips');
    await visit.ask('a fifth', 'Shift+Enter');
    await visit.page.locator('#error-text', { hasText: 'At most four questions' }).waitFor();
    assert.match(visit.page.url(), /#a=dunnart&b=potoroo&c=dunnart\+OR\+potoroo&d=nobody&focus=d/);
    await visit.page.locator('#map canvas.top').focus();
    await visit.page.keyboard.press('2');
    await visit.row('a potoroo').waitFor();
    assert.equal(await visit.row('a dunnart').count(), 0);
    assert.equal(await visit.page.locator('.chip [aria-pressed=true] .swatch').textContent(), 'b');
    await visit.page.keyboard.press('Escape');
    await until(async () => await visit.page.locator('.chip').count() === 3, 'Esc leaves it');
    await visit.page.getByRole('button', { name: 'Remove nobody' }).click();
    await isAccessible(visit.page);
    await visit.close();
  },

  async 'what rises is told, and a click compares it'() {
    await servers.sluice('user', 'add', 'bea', '--name', 'Bea');
    for (const user of ['ada', 'bea']) await servers.post(user, 'a kaluta #kaluta');
    const visit = await Visit.listen('a=kaluta&range=15m');
    await visit.page.locator('#rising button', { hasText: '#kaluta' }).click();
    await visit.page.locator('.chip [aria-pressed=true]', { hasText: '#kaluta' }).waitFor();
    assert.match(visit.page.url(), /#a=kaluta&b=%23kaluta&focus=b/);
    await isAccessible(visit.page);
    await visit.page.locator('#rising button', { hasText: '#kaluta' }).waitFor();
    await visit.page.getByRole('button', { name: 'API requests' }).click();
    await visit.page.locator('pre', { hasText: 'window=1h' }).filter({ hasText: '/v1/stream/trends' }).waitFor();
    await visit.page.locator('summary', { hasText: 'Rising as JSON' }).click();
    await visit.page.locator('#json-rising', { hasText: '#kaluta' }).waitFor();
    const [hashtags] = JSON.parse(await visit.text('#json-rising')).filter((message) => message.of === 'hashtags');
    assert.deepEqual(hashtags.terms.map(({ term, users }) => [term, users]), [['#kaluta', 2]]);
    await visit.close();
  },

  async 'a row of a list adds to the question'() {
    for (const lang of ['de', 'de', 'fr']) await servers.post('ada', 'a kowari', '--lang', lang);
    const visit = await Visit.listen('a=kowari&range=15m');
    await visit.page.getByRole('button', { name: /^French/ }).click();
    await until(async () => await visit.page.locator('#question').inputValue() === 'kowari lang:fr', 'it is asked for');
    await until(async () => await visit.row('a kowari').count() === 1, 'the posts follow');
    await visit.close();
  },

  async 'a part of the time is chosen, and everything is of then'() {
    await servers.post('ada', 'an early mulgara', '--lang', 'de');
    const visit = await Visit.listen('a=mulgara&range=5m');
    await visit.row('an early mulgara').waitFor();
    await visit.page.locator('#timeline canvas').focus();
    await visit.page.keyboard.press('ArrowLeft');
    await visit.page.locator('#brushed').waitFor();
    assert.match(await visit.text('#brushed-text'), /^\d\d:\d\d:\d\d to \d\d:\d\d:\d\d$/);
    await visit.page.keyboard.press('Escape');
    await visit.page.locator('#brushed').waitFor({ state: 'hidden' });
    const canvas = await visit.page.locator('#timeline canvas').boundingBox();
    await visit.page.mouse.move(canvas.x + canvas.width * 0.5, canvas.y + 50);
    await visit.page.mouse.down();
    await visit.page.mouse.move(canvas.x + canvas.width - 1, canvas.y + 60, { steps: 3 });
    await visit.page.mouse.up();
    await visit.page.locator('#brushed').waitFor();
    await visit.row('an early mulgara').waitFor();
    await until(async () => /^German1 · 100%$/.test(await visit.text('#languages')), 'the languages are of then');
    assert.equal(await visit.page.locator('#rising-block').isVisible(), false, 'what rises is of now')
    await servers.post('ada', 'a late mulgara');
    const { url } = { url: visit.page.url() };
    assert.match(decodeURIComponent(url), /&t=\d{4}-[^/]*Z\/\d{4}-[^/]*Z$/);
    const other = await Visit.open(`/${new URL(url).hash}&token=${token}`);
    await other.row('an early mulgara').waitFor();
    assert.equal(await other.row('a late mulgara').count(), 0);
    await until(async () => /1 post$/.test(await other.text('#about')), 'who gets the link sees the same');
    await other.page.getByRole('button', { name: 'Back to live' }).click();
    await other.row('a late mulgara').waitFor();
    await other.context.close();
    await visit.close();
  },

  async 'all tabs of a browser share one connection, also the seventh'() {
    for (const text of ['numbats', 'more numbats']) await servers.post('ada', text);
    const first = await Visit.listen('a=numbats&range=15m');
    await first.tells('2 posts in 15 min');
    const pages = await Promise.all(Array.from({ length: 7 }, async () => {
      const page = await first.context.newPage();
      page.on('pageerror', (error) => first.troubles.push(error.stack));
      await page.goto(`${servers.url}/#a=numbats&range=15m&token=${token}`);
      return page;
    }));
    for (const page of pages) await page.locator('#about', { hasText: '2 posts in 15 min' }).waitFor(); // those that were opened later, too
    assert.equal((await servers.status()).metrics.sluice_streams, 1);
    await servers.post('ada', 'numbats for all');
    for (const page of pages) await page.locator('#about', { hasText: '3 posts in 15 min' }).waitFor();
    await first.close();
  },

  async 'a tab of a browser that has no SharedWorker has a connection of its own'() {
    await servers.post('ada', 'a dibbler');
    const visit = await Visit.open('/');
    await visit.page.addInitScript(() => { delete globalThis.SharedWorker; });
    await visit.page.goto(`${servers.url}/?#a=dibbler&range=15m&token=${token}`);
    await visit.tells('1 post in 15 min');
    assert.equal(await visit.page.evaluate(() => 'SharedWorker' in globalThis), false);
    await servers.post('ada', 'another dibbler');
    await visit.row('another dibbler').waitFor();
    await visit.close();
  },

  async 'a token in the address leaves it'() {
    const visit = await Visit.listen('a=lang%3Aen');
    assert.equal(visit.page.url().includes(token), false);
    assert.equal(visit.page.url().includes('lang'), true);
    await visit.page.reload();
    await visit.isLive(); // it is stored for this tab
    await visit.close();
  },

  async 'a bad token is refused in words, and one that has expired in others'() {
    const visit = await Visit.open('/#token=a.b.c');
    await visit.page.locator('#token-what', { hasText: 'not valid' }).waitFor();
    await visit.page.getByLabel('Token', { exact: true }).fill(servers.expiredToken());
    await visit.page.getByLabel('Token', { exact: true }).press('Enter');
    await visit.page.getByRole('heading', { name: 'This token has expired' }).waitFor();
    await isAccessible(visit.page);
    await visit.page.getByLabel('Token', { exact: true }).fill(token);
    await visit.page.getByLabel('Token', { exact: true }).press('Enter');
    await visit.isLive();
    visit.forgive(/status of 401|WebSocket connection to/);
    await visit.close();
  },

  async 'a token without the firehose offers what it permits'() {
    await servers.post('ada', 'a quoll');
    const visit = await Visit.open(`/#token=${await servers.token('stream:filter')}`);
    await visit.page.getByRole('button', { name: 'Use Filter, which it permits' }).click();
    await visit.ask('quoll');
    await visit.row('a quoll').waitFor();
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
    await visit.page.evaluate(() => { location.hash = 'a=tea&range=5m'; });
    await until(async () => await visit.page.locator('#question').inputValue() === 'tea', 'it is asked for');
    await servers.post('ada', 'tea for the feed');
    await visit.row('tea for the feed').waitFor();
    await visit.page.locator('.skip').focus();
    await visit.page.keyboard.press('Enter');
    assert.equal(await visit.page.evaluate(() => document.activeElement.id), 'feed');
    assert.match(visit.page.url(), /a=tea/);
    await visit.close();
  },

  async 'an address of the page before asks for the same, and becomes one of this page'() {
    await servers.post('ada', 'an antechinus at noon', '--lang', 'en');
    await servers.post('ada', 'an antechinus at noon, too', '--lang', 'de');
    const visit = await Visit.listen('stream=filter&track=noon+antechinus,nobodys&language=en');
    await visit.row('at noon').waitFor();
    assert.equal(await visit.page.locator('#question').inputValue(), '(noon antechinus OR nobodys) lang:en');
    assert.match(visit.page.url(), /#a=%28noon\+antechinus\+OR\+nobodys%29\+lang%3Aen(&|$)/);
    assert.equal(await visit.row('too').count(), 0);
    await visit.close();
  },

  async 'who goes from post to post with the keys reads on undisturbed'() {
    const visit = await Visit.listen('a=woylie&range=15m');
    for (const text of ['the first woylie', 'the second woylie']) await servers.post('ada', text);
    await visit.row('the second').waitFor();
    const focused = () => visit.page.evaluate(() => document.activeElement.textContent);
    await visit.page.locator('#feed').focus();
    await visit.page.keyboard.press('PageDown');
    assert.match(await focused(), /the second/);
    await visit.page.keyboard.press('PageDown');
    assert.match(await focused(), /the first/);
    await visit.page.keyboard.press('Enter');
    assert.match(await visit.row('the first').locator('pre').textContent(), /"type": "post"/);
    await servers.post('ada', 'the third woylie');
    await visit.page.getByRole('button', { name: '1 new' }).waitFor();
    assert.equal(await visit.row('the third').count(), 0);
    await visit.page.keyboard.press('Enter');
    await visit.page.keyboard.press('PageUp');
    await visit.page.keyboard.press('PageUp');
    await visit.row('the third').waitFor();
    await visit.close();
  },

  async 'on a phone there are posts, and a map at a touch'() {
    const visit = await Visit.listen('a=', { viewport: { width: 2560, height: 1300 } });
    await servers.post('ada', `a long story ${'and so on '.repeat(20)}`);
    await servers.post('ada', 'from far away', '--geo', '139.7,35.7');
    await visit.row('from far away').waitFor();
    for (const width of [1200, 820, 360]) { // a shrinking window, a phone that is rotated
      await visit.page.setViewportSize({ width, height: 740 });
      const [room, ...rows] = await visit.page.locator('.posts, .row').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().right));
      assert.ok(rows.length > 1 && Math.max(...rows) <= room + 0.5, `${width}: ${Math.max(...rows)} > ${room}`);
      const { scrollWidth, clientWidth } = await visit.page.evaluate(() => document.documentElement);
      assert.equal(scrollWidth, clientWidth, 'nothing sticks out');
    }
    // A message may take up a line for a moment.
    await visit.page.waitForFunction(() => document.querySelector('#feed').getBoundingClientRect().top < 420);
    assert.equal(await visit.page.locator('#map').isVisible(), false);
    await visit.page.locator('#views').getByText('Map').click();
    await visit.page.locator('#map.is-there').waitFor();
    assert.equal(await visit.row('from far away').isVisible(), false);
    await isAccessible(visit.page);
    await visit.close();
  },

  async 'the commands for a terminal work there'() {
    const visit = await Visit.listen("a=tea+%22it's+fine%22&range=15m");
    await visit.page.getByRole('button', { name: 'API requests' }).click();
    await isAccessible(visit.page);
    const { spawn } = await import('node:child_process');
    const before = (await servers.status()).metrics.sluice_streams;
    for (const id of ['curl', 'tail']) {
      const child = spawn('bash', ['-c', await visit.text(`#${id}`)], { stdio: ['ignore', 'pipe', 'ignore'],
        env: { ...process.env, TOKEN: token, PATH: `${path.join(build, 'cli')}:${process.env.PATH}` } });
      await until(async () => (await servers.status()).metrics.sluice_streams === before + 1, `${id} listens`);
      const line = new Promise((resolve) => { child.stdout.once('data', (data) => resolve(data.toString())); });
      await servers.post('ada', `tea, it's fine, by ${id}`);
      assert.match(JSON.parse((await line).split('\n')[0]).post.text, /it's fine/);
      child.kill();
      await until(async () => (await servers.status()).metrics.sluice_streams === before, `${id} has gone`);
    }
    await visit.close();
  },

  async 'every page is accessible, on a desk and a phone, in both themes'() {
    await servers.post('ada', 'Four hours on the night train, and the dining car has real cups. ☕ #nighttrain', '--lang', 'en', '--geo', '12.86,55.57');
    await servers.post('ada', 'صباح الخير، البحر هادئ اليوم #الإسكندرية', '--lang', 'ar', '--geo', '29.9,31.2');
    await servers.post('ada', 'Сегодня первый снег! https://example.org/snow', '--lang', 'ru');
    await servers.post('ada', '北京的秋天真好看 #北京#', '--lang', 'zh', '--geo', '116.4,39.9');
    const gone = await servers.post('ada', 'This one is taken back in a moment.', '--lang', 'en');
    const sizes = { desk: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
    const live = await Visit.listen('a=&b=coffee+OR+tea&focus=a');
    await live.row('dining car').waitFor();
    await servers.sluice('delete', '--user', 'ada', gone);
    await live.page.locator('.row.is-deleted').waitFor();
    const status = await Visit.open('/status');
    await status.isLive();
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
  assert.match(await second.text('#notice-text'), /^This token's subject has too many streams\./);
  await until(async () => /^Next try in \d+ s$/.test(await second.text('#state-text')), 'it counts down');
  await isAccessible(second.page);
  await first.context.close(); // the other one may replace it at once
  await second.page.evaluate(() => document.querySelector('#try-now').click()); // it may have disappeared
  await until(async () => / in 15 min/.test(await second.text('#about')), 'it is live');
  second.forgive(/status of 429|WebSocket connection to/);
  first.forgive(/WebSocket connection to/);
  await second.close();
}

async function isAccessible(page) {
  // Evaluated by the debugger, so that the page's Content-Security-Policy stays unchanged.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`), []);
}

const parts = { Visit, servers, until, isAccessible, folder: SHOTS, token: () => token, gone: GONE };
Object.assign(tests, statusTests(parts), stateTests(parts));

// --- all of them ---

let failed = 0;
try {
  await servers.start(() => servers.logPast(Date.now() - 41 * 60_000, 'a night parrot'));
  token = await servers.token();
  await servers.sluice('user', 'add', 'ada', '--name', 'Ada Lindqvist');
  browser = await chromium.launch({
    executablePath: process.env.SLUICE_CHROMIUM ?? '/usr/bin/chromium',
    // Containers may have a small /dev/shm, and the sandbox does not work as root.
    args: ['--disable-dev-shm-usage', ...(process.getuid() === 0 ? ['--no-sandbox'] : [])],
  });
  for (const [name, test] of Object.entries(tests)) {
    if (!wanted.split("|").some((words) => name.includes(words))) continue;
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
process.exit(failed ? 1 : 0); // whatever a failed test has left open
