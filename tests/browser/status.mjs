// status.mjs - the page at /status in each state of a server.
//
// The problems are real: a Redis that is stopped, a client that does not read, a server that ends.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';
import { foreignPost } from './servers.mjs';

const LONG = 'a long post, so that few of them fill a socket '.repeat(60);

export function statusTests({ Visit, servers, until, isAccessible, folder, token, gone }) {
  const open = async (options) => {
    const visit = await Visit.open('/status', options);
    await visit.isLive();
    return visit;
  };
  const level = (visit) => visit.page.locator('#verdict').getAttribute('data-level');
  const hasLevel = (visit, name) => visit.page.locator(`#verdict[data-level=${name}]`).waitFor();
  const shoot = (visit, name) => visit.page.screenshot({ path: path.join(folder, `status-${name}.png`), fullPage: true });
  const incident = (visit, text) => visit.page.locator('#incidents li', { hasText: text });

  // Requests a stream, and reads nothing of it.
  async function stall(path = '/v1/stream/firehose') {
    const socket = net.connect({ port: servers.port, host: '127.0.0.1' });
    await once(socket, 'connect');
    socket.pause();
    socket.on('error', () => {});
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token()}\r\n\r\n`);
    await until(async () => (await servers.status()).metrics.sluice_streams > 0, 'it is a stream');
    return socket;
  }

  return {
    async 'the status page says how the server is, and shows the last 15 minutes'() {
      const visit = await open();
      assert.ok(['All is well', 'Warning'].includes(await visit.text('#verdict-level'))); // Redis may be slow on a slow machine
      assert.match(await visit.text('#verdict-since'), /Since \d/);
      assert.equal(await visit.page.locator('#pipe li').count(), 6);
      const stalled = await stall();
      await visit.shows('#pipe-streams', '1');
      stalled.destroy();
      await visit.shows('#pipe-streams', '0');
      await until(async () => await visit.page.locator('#plots .line').count() >= 8, 'samples are drawn');
      await incident(visit, 'started.').waitFor();
      await visit.page.getByText('Show as a table').click();
      await until(async () => await visit.page.locator('#past-table tbody tr').count() === 15, 'a line a minute');
      await visit.page.getByText('Details', { exact: true }).click();
      const kinds = Object.keys((await servers.status()).metrics.sluice_streams_by_kind).map((kind) => kind.split('/')[0]);
      assert.deepEqual(await visit.page.locator('#kinds tbody th').allTextContents(), [...new Set(kinds), 'all']);
      await visit.page.getByText(/^Workers: 1 of 1 up$/).click();
      await visit.page.locator('#workers tbody tr').waitFor();
      assert.equal(await visit.page.evaluate(() => document.getAnimations().length), 0);
      await isAccessible(visit.page);
      await visit.close();
    },

    async 'the moment under the crosshair is read with the keys'() {
      const visit = await open();
      const moment = visit.page.locator('#moment');
      const said = () => moment.getAttribute('aria-valuetext');
      await until(async () => /In \d/.test(await said()), 'it says the numbers of now');
      await moment.focus();
      assert.equal(await moment.textContent(), 'now');
      await visit.page.keyboard.press('ArrowLeft');
      assert.match(await moment.textContent(), /^\d\d?:\d\d:\d\d/);
      assert.equal(await visit.page.locator('.cross:not([hidden])').count(), 6);
      await visit.page.keyboard.press('Home');
      assert.match(await said(), /no data/);
      await visit.page.keyboard.press('Escape');
      assert.equal(await moment.textContent(), 'now');
      await visit.page.locator('#plots .area').first().hover();
      assert.equal(await visit.page.locator('.cross:not([hidden])').count(), 6);
      await visit.close();
    },

    async 'a silent Redis is seen at once, and told of afterwards'() {
      const visit = await open();
      servers.redis.kill('SIGSTOP');
      try {
        await hasLevel(visit, 'critical');
        assert.match(await visit.text('#verdict-text'), /^Redis silent for /);
        assert.match(await visit.page.title(), /^\(!!\) Redis silent for .* – Sluice$/);
        assert.match(await visit.page.locator('#icon').getAttribute('href'), /critical-\w+\.svg$/);
        assert.equal(await visit.page.locator('#pipe li').first().getAttribute('data-level'), 'critical');
        await isAccessible(visit.page);
        await shoot(visit, 'silent');
        await visit.page.getByRole('link', { name: 'Show the latency' }).first().click();
        await visit.page.locator('#times tbody th', { hasText: 'Redis round trip' }).waitFor(); // in a fold that was closed
      } finally {
        servers.redis.kill('SIGCONT');
      }
      await until(async () => !/silent/.test(await visit.text('#verdict-text')), 'it is over');
      await incident(visit, 'Redis silent for').filter({ hasText: 'lasted' }).first().waitFor(); // a busy machine may add another
      await visit.close();
    },

    async 'who is behind is named, with what it reads and needs'() {
      const stalled = await stall('/v1/stream/filter?track=long+post');
      const visit = await open();
      const numbers = async () => (await servers.status()).metrics;
      await until(async () => {
        await servers.publish(Array.from({ length: 50 }, () => foreignPost(LONG)));
        return (await numbers()).sluice_owed_events > 50;
      }, 'it is behind');
      await visit.page.locator('#verdict-text, #verdict-parts', { hasText: '1 of 1 streams is behind, by ' }).first().waitFor();
      await visit.shows('#behind-title', 'Behind (1)');
      const row = visit.page.locator('#slow tbody tr');
      assert.equal(await row.count(), 1);
      assert.equal(await row.locator('th').textContent(), '1'); // the subject; in development mode
      assert.match(await row.locator('td').first().textContent(), /^filter, ndjson/);
      assert.match(await row.locator('.asks').textContent(), /with "long" and "post"/);
      assert.match(await visit.page.title(), /^\(!+\) /);
      await visit.page.getByRole('link', { name: 'Show the streams that are behind' }).press('Enter');
      assert.equal(await visit.page.evaluate(() => document.activeElement.id), 'behind');
      await until(() => row.evaluate((one) => one.getBoundingClientRect().bottom < innerHeight), 'the culprit is in sight');
      await visit.page.evaluate(() => scrollTo(0, 0));
      for (const [name, viewport] of Object.entries({ desk: { width: 1440, height: 900 }, wide: { width: 2560, height: 1300 },
        phone: { width: 390, height: 844 } })) {
        await visit.page.setViewportSize(viewport);
        for (const media of [{ colorScheme: 'light' }, { colorScheme: 'dark' }, { colorScheme: 'light', forcedColors: 'active' }]) {
          await visit.page.emulateMedia({ forcedColors: 'none', ...media });
          if (name !== 'wide') await isAccessible(visit.page);
          await shoot(visit, `behind-${name}-${media.forcedColors ? 'forced' : media.colorScheme}`);
        }
        const { scrollWidth, clientWidth } = await visit.page.evaluate(() => document.documentElement);
        assert.equal(scrollWidth, clientWidth, 'nothing sticks out');
      }
      const cut = await visit.page.locator('#pipe small').evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent));
      assert.deepEqual(cut, [], 'on a phone the notes are whole');
      const { bottom } = await row.evaluate((one) => ({ bottom: one.getBoundingClientRect().bottom + scrollY }));
      assert.ok(bottom < 844 * 1.25, `on a phone the culprit is near: ${bottom}`);
      stalled.destroy();
      await visit.page.getByText('All streams keep up.').waitFor();
      await incident(visit, 'is behind, by').filter({ hasText: 'lasted' }).waitFor();
      await visit.close();
    },

    async 'a server that is away is not called well, and its numbers are marked as old'() {
      const visit = await open();
      await servers.stopGateway();
      await visit.page.locator('#stale', { hasText: /No answer since .*\. The numbers below are from then\./ }).waitFor();
      assert.equal(await level(visit), 'unknown');
      assert.match(await visit.page.title(), /^\(\?\) No answer/);
      await isAccessible(visit.page);
      await shoot(visit, 'away');
      await servers.startGateway();
      await visit.isLive();
      assert.equal(await visit.page.locator('#stale').isVisible(), false);
      await until(async () => await incident(visit, 'started.').count() === 1, 'its successor has a past of its own');
      visit.forgive(gone);
      await visit.close();
    },

    async 'a token shows whose streams are behind, and a bad one is refused'() {
      const visit = await open();
      assert.equal(await visit.page.locator('#ask-token').isVisible(), false); // development mode shows it without a token
      await visit.page.evaluate(() => sessionStorage.setItem('sluice.token', 'x.y.z'));
      await until(async () => await visit.text('#error-token') === 'The token is not valid.', 'it is said');
      await visit.page.evaluate((good) => sessionStorage.setItem('sluice.token', good), token());
      await visit.shows('#error-token', '');
      visit.forgive(/status of 401/);
      await visit.close();
    },
  };
}
