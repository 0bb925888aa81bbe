// states.mjs - the page at / in case of problems, and details of it.
//
// Tests that leave a gap in the log come last: it would appear in the numbers of the others.
import assert from 'node:assert/strict';
import http from 'node:http';
import path from 'node:path';

export function stateTests({ Visit, servers, until, isAccessible, folder, token, gone }) {
  const shoot = (visit, name) => visit.page.screenshot({ path: path.join(folder, `live-${name}.png`) });

  // Opens the page with this token.
  async function listenAs(jwt, fragment) {
    const visit = await Visit.open(`/#${fragment}&token=${jwt}`);
    await visit.isLive();
    return visit;
  }

  async function giveToken(visit, jwt) {
    const field = visit.page.getByLabel('Token', { exact: true });
    await field.fill(jwt);
    await field.press('Enter');
    await visit.isLive();
  }

  const heading = (visit, name) => visit.page.getByRole('heading', { name }).waitFor();

  // Replaces the gateway by another one while `test` runs.
  async function withGateway(options, test) {
    await servers.stopGateway();
    await servers.startGateway(...options);
    try {
      await test();
    } finally {
      await servers.stopGateway();
      await servers.startGateway();
    }
  }

  // Runs the test with the address of a proxy that knows no upgrades.
  async function withProxy(test) {
    const proxy = http.createServer((request, response) => {
      const { url, method, headers } = request;
      const onward = http.request(servers.url + url, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      onward.on('error', () => response.destroy());
      response.on('close', () => onward.destroy());
      request.pipe(onward);
    });
    proxy.on('upgrade', (_, socket) => socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n'));
    await new Promise((resolve) => { proxy.listen(0, '127.0.0.1', resolve); });
    try {
      await test(`http://127.0.0.1:${proxy.address().port}`);
    } finally {
      proxy.closeAllConnections();
      proxy.close();
    }
  }

  return {
    async 'where no WebSocket is let through, the page says what waits'() {
      await servers.post('ada', 'a monito', '--lang', 'en');
      await withProxy(async (url) => {
        const visit = await Visit.open('/');
        await visit.page.goto(`${url}/#a=monito&range=15m&token=${token()}`);
        await visit.page.getByText(/: 2 parts of this page wait\.$/).waitFor();
        assert.equal(await visit.text('#state-text'), 'Partly live');
        await visit.row('a monito').waitFor();
        await visit.tells('1 post in 15 min');
        await isAccessible(visit.page);
        await shoot(visit, 'no-websocket');
        visit.forgive(/^asked http|WebSocket connection to/);
        await visit.close();
      });
    },

    async 'a post says which question it is there for, and which part of it'() {
      await servers.post('ada', 'a pademelon in the rain', '--lang', 'en');
      const visit = await Visit.listen('a=%28pademelon+OR+nobodys%29+lang%3Aen&b=rain&c=nobody&focus=a');
      await visit.row('a pademelon').locator('.text').click();
      await until(async () => await visit.row('a pademelon').locator('.why').textContent()
        === 'a(pademelon OR nobodys) lang:en: matched by pademelon, lang:enbrain', 'it is said');
      await isAccessible(visit.page);
      await shoot(visit, 'why');
      await visit.close();
    },

    async 'a wide screen has four columns, and the chart all of its width'() {
      await servers.sluice('user', 'add', 'eve', '--name', 'Eve');
      for (const user of ['ada', 'eve']) await servers.post(user, 'a monjon #monjon', '--lang', 'en', '--geo', '139.7,35.7');
      const visit = await Visit.listen('a=monjon&range=15m', { viewport: { width: 2560, height: 1300 } });
      await visit.row('a monjon').first().waitFor();
      await visit.page.locator('#rising button').first().waitFor();
      const boxes = await visit.page.locator('.where, #rising-block, #languages-block, .posts').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
      assert.equal(boxes.length, 4);
      for (let i = 1; i < 4; i++) assert.ok(boxes[i].left >= boxes[i - 1].right, `column ${i} stands beside the one before`);
      const chart = await visit.page.locator('#timeline').boundingBox();
      assert.ok(chart.height >= 320 && chart.width > 2400, `${chart.width} x ${chart.height}`);
      await isAccessible(visit.page);
      await shoot(visit, 'wide');
      await visit.close();
    },

    async 'where there is no room for three columns, what rises is below the map'() {
      await servers.sluice('user', 'add', 'mia', '--name', 'Mia');
      for (const user of ['ada', 'mia']) await servers.post(user, 'a mala #mala', '--lang', 'en', '--geo', '139.7,35.7');
      const visit = await Visit.listen('a=mala&range=15m', { viewport: { width: 1024, height: 768 } });
      await visit.row('a mala').first().waitFor();
      await visit.page.locator('#rising button').first().waitFor();
      const [where, what, posts] = await visit.page.locator('.where, .what, .posts').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
      assert.ok(what.top >= where.bottom && what.left === where.left, 'below the map');
      assert.ok(posts.left >= where.right && posts.top === where.top, 'posts beside it');
      assert.ok(Math.abs(posts.bottom - what.bottom) < 1, 'and as high as both');
      await isAccessible(visit.page);
      await shoot(visit, '1024');
      await visit.close();
    },

    async 'of a part of the time that had many posts so many come, and it is said how many did not'() {
      await Promise.all(Array.from({ length: 64 }, (_, i) => servers.post('ada', `a mulga parrot ${i}`)));
      const visit = await Visit.listen('a=%22mulga+parrot%22&range=5m');
      await visit.tells('64 posts in 5 min');
      const { x, y, width } = await visit.page.locator('#timeline canvas').boundingBox();
      await visit.page.mouse.move(x + 50, y + 50);
      await visit.page.mouse.down();
      await visit.page.mouse.move(x + width - 1, y + 60, { steps: 3 });
      await visit.page.mouse.up();
      await visit.page.locator('#brushed').waitFor();
      await shoot(visit, 'then');
      await until(async () => await visit.text('#skipped') === '+4 not shown', '60 of them come');
      await until(async () => await visit.row('a mulga parrot').count() === 60, '60 rows');
      await visit.page.getByRole('button', { name: 'API requests' }).click();
      for (const title of ['Posts', 'The chart', 'Languages']) await visit.page.locator('summary', { hasText: `${title} as JSON` }).click();
      await isAccessible(visit.page);
      const json = async (name) => {
        await visit.page.locator(`#json-${name}`, { hasText: /./ }).waitFor();
        return JSON.parse(await visit.text(`#json-${name}`));
      };
      assert.equal((await json('posts')).length, 60);
      assert.equal((await json('chart')).lines[0].counts.reduce((all, { posts }) => all + posts, 0), 64);
      assert.equal((await json('lang')).groups.reduce((all, { posts }) => all + posts, 0), 64);
      await visit.close();
    },

    async 'on a phone with a finger posts begin in its upper third, below the hint for who is there for the first time'() {
      await servers.post('ada', 'a wambenger');
      for (const fragment of ['', 'a=wambenger']) {
        const visit = await Visit.listen(fragment, { viewport: { width: 390, height: 844 }, isPhone: true });
        await visit.row('a wambenger').waitFor();
        const top = (selector) => visit.page.locator(selector).evaluate((one) => one.getBoundingClientRect().top);
        if (!fragment) {
          const [{ right, bottom }, ...parts] = await visit.page.locator('#hint, #hint-text, #hint button:visible').evaluateAll((all) => all
            .map((one) => ({ ...one.getBoundingClientRect().toJSON(), isCut: one.scrollWidth > one.clientWidth })));
          assert.equal(parts.length, 5, 'three questions to try, and a way to close it');
          for (const part of parts) assert.ok(!part.isCut && part.right <= right && part.bottom <= bottom, JSON.stringify(part));
          await visit.page.locator('#hint').evaluate((hint) => { hint.style.display = 'none'; }); // for what is below it
        }
        // A message may take up a line for a moment.
        await until(async () => await top('#feed') <= 230, `posts begin at ${await top('#feed')}`);
        if (!fragment) await visit.page.locator('#hint').evaluate((hint) => hint.removeAttribute('style'));
        const { scrollWidth, clientWidth } = await visit.page.evaluate(() => document.documentElement);
        assert.equal(scrollWidth, clientWidth, 'nothing sticks out');
        await visit.page.locator('#pace').selectOption('5');
        await visit.row('a wambenger').waitFor();
        await isAccessible(visit.page);
        await shoot(visit, `finger-${fragment ? 'question' : 'first'}`);
        await visit.close();
      }
    },

    async 'on a phone a tap on the chart fills the screen with it, and a key or a button ends that'() {
      await servers.post('ada', 'a wongai');
      const visit = await Visit.listen('a=wongai&range=5m', { viewport: { width: 390, height: 844 }, isPhone: true });
      await visit.tells('1 post in 5 min');
      const canvas = visit.page.locator('#timeline canvas');
      const button = visit.page.locator('#enlarge');
      const height = async () => (await canvas.boundingBox()).height;
      const small = await height();
      const isSmall = () => until(async () => await height() === small, 'it is small');
      for (const [enlarge, end] of [[() => canvas.tap(), () => visit.page.keyboard.press('Escape')],
        [() => button.tap(), () => button.tap()], [() => canvas.press('Enter'), () => button.press('Enter')]]) {
        await isSmall();
        await enlarge();
        await until(async () => await height() > 600, 'it is large');
        await visit.page.locator('#ranges').waitFor();
        const { x, y, width: wide, height: high } = await visit.page.locator('.flow').boundingBox();
        assert.deepEqual([x, y, wide, high], [0, 0, 390, 844], 'it fills the screen');
        for (let i = 0; i < 12; i++) { // nothing behind it is reached
          await visit.page.keyboard.press('Tab');
          assert.ok(await visit.page.evaluate(() => document.activeElement === document.body || document.activeElement.closest('.flow')));
        }
        await isAccessible(visit.page);
        await shoot(visit, 'finger-chart');
        await end();
      }
      await isSmall();
      assert.equal(await visit.page.locator('#brushed').isVisible(), false);
      await visit.page.locator('#question').focus(); // it can be reached again
      assert.equal(await visit.page.evaluate(() => document.activeElement.id), 'question');
      await visit.close();
    },

    async 'on a phone two fingers select a part of the time'() {
      await servers.post('ada', 'a gidgee');
      const visit = await Visit.listen('a=gidgee&range=5m', { viewport: { width: 390, height: 844 }, isPhone: true });
      await visit.tells('1 post in 5 min');
      await visit.page.locator('#timeline canvas').tap();
      await visit.page.locator('#ranges').waitFor();
      const { x, y, width } = await visit.page.locator('#timeline canvas').boundingBox();
      const session = await visit.context.newCDPSession(visit.page);
      const touch = (type, ...shares) => session.send('Input.dispatchTouchEvent', { type,
        touchPoints: shares.map((share, id) => ({ x: x + share * width, y: y + 300, id })) });
      await touch('touchStart', 0.5);
      await touch('touchStart', 0.5, 0.6);
      await touch('touchMove', 0.3, 0.7);
      await touch('touchEnd');
      await visit.page.locator('#brushed').waitFor();
      const [from, to] = new URLSearchParams(new URL(visit.page.url()).hash.slice(1)).get('t').split('/').map(Date.parse);
      const share = (to - from) / 300_000 * (width - 78) / width; // 78 pixels are beside the chart
      assert.ok(share > 0.38 && share < 0.43, `${share} of the width`);
      await visit.page.locator('#enlarge').tap();
      await visit.page.locator('#nothing', { hasText: 'No posts in this period.' }).waitFor();
      await visit.close();
    },

    async 'for a question with few posts the page looks further back, and says when the last one was'() {
      const visit = await Visit.listen('a=%22night+parrot%22');
      await visit.tells('1 post in 24 h');
      assert.match(await visit.text('#about'), /^last one (4\d min|5\d min|1\.\d h) ago · /);
      await visit.row('a night parrot').locator('time', { hasText: /min|h/ }).waitFor();
      assert.match(visit.page.url(), /&range=24h$/);
      assert.equal(await visit.page.locator('#ranges input[value="24h"]').isChecked(), true);
      await isAccessible(visit.page);
      await shoot(visit, 'rare');
      await visit.page.getByRole('button', { name: /^last one/ }).click(); // selects its minute
      await visit.page.locator('#brushed').waitFor();
      await visit.row('a night parrot').waitFor();
      await until(async () => /1 post$/.test(await visit.text('#about')), 'it is counted there');
      const [from, to] = new URLSearchParams(new URL(visit.page.url()).hash.slice(1)).get('t').split('/').map(Date.parse);
      assert.equal(to - from, 60_000);
      await visit.page.getByRole('button', { name: 'Back to live' }).click();
      await visit.page.locator('#ranges').getByText('15 min').click(); // a choice of the user stays
      await visit.tells('0 posts in 15 min');
      await visit.tells('0 posts in 15 min');
      assert.equal(await visit.page.locator('#ranges input[value="15m"]').isChecked(), true);
      await visit.close();
    },

    async 'a click on a number shows more of what it counts'() {
      await servers.post('ada', 'a wyulda', '--geo', '139.7,35.7');
      const visit = await Visit.listen('a=wyulda&range=15m');
      await visit.tells('1 post in 15 min');
      await visit.page.getByRole('button', { name: /^\d[\d,]* posts a/ }).click(); // its posts
      await visit.page.locator('#brushed').waitFor();
      await visit.row('a wyulda').waitFor();
      await visit.page.keyboard.press('Escape');
      await visit.page.locator('#brushed').waitFor({ state: 'hidden' });
      await visit.page.getByRole('button', { name: /^[\d.]+% of all$/ }).press('Enter'); // all posts, beside it
      await visit.page.locator('.chip [aria-pressed=true]', { hasText: 'All posts' }).waitFor();
      assert.match(visit.page.url(), /#a=wyulda&b=&focus=b/);
      await visit.page.locator('.chip', { hasText: 'wyulda' }).locator('.rate').click(); // the question of that number
      await visit.page.locator('.chip [aria-pressed=true]', { hasText: 'wyulda' }).waitFor();
      await visit.page.locator('.chip', { hasText: 'wyulda' }).locator('.rate').click(); // once more: change it
      assert.equal(await visit.page.evaluate(() => document.activeElement.id), 'question');
      assert.equal(await visit.page.evaluate(() => getSelection().toString() || document.activeElement.value), 'wyulda');
      await isAccessible(visit.page);
      await visit.close();
    },

    async 'how long the server needs to answer is beside the state'() {
      const visit = await Visit.listen('a=&range=5m');
      await visit.page.locator('#state-text', { hasText: /^Live · \d+ ms$/ }).waitFor();
      await isAccessible(visit.page);
      await shoot(visit, 'trip');
      await visit.page.setViewportSize({ width: 390, height: 844 }); // only the dot, but still told
      assert.ok((await visit.page.locator('#state-text').boundingBox()).width <= 1);
      await visit.page.keyboard.press('Space');
      await visit.shows('#state-text', 'Paused');
      await until(async () => (await visit.page.locator('#state-text').boundingBox()).width > 30, 'another state is a word');
      await visit.close();
    },

    async 'who follows whom is not on the page, but the drawer has the request'() {
      const visit = await Visit.listen('a=tea&range=5m');
      await visit.page.getByRole('button', { name: 'API requests' }).click();
      const [tail, curl] = await visit.page.locator('pre', { hasText: 'follow' }).allTextContents();
      assert.match(tail, /firehose \\\n {2}--types follow,unfollow$/);
      assert.match(curl, /types=follow,unfollow \\\n.*\/v1\/stream\/firehose$/);
      await isAccessible(visit.page);
      await visit.close();
      const other = await Visit.open(`/#a=tea&token=${await servers.token('stream:filter')}`);
      await other.isLive();
      await other.page.getByRole('button', { name: 'API requests' }).click();
      assert.equal(await other.page.locator('pre', { hasText: 'follow' }).count(), 0, 'not with this token');
      await other.close();
    },

    async 'what the server warns of is shown'() {
      const visit = await Visit.listen('a=cat+or+dog&range=5m');
      await visit.page.locator('#warning', { hasText: /Looked for as a word at character 5: cat \^or dog/ }).waitFor();
      await isAccessible(visit.page);
      await visit.ask('cat OR dog');
      await visit.page.locator('#warning').waitFor({ state: 'hidden' });
      await visit.close();
      const other = await Visit.open(`/#a=cat&range=5m&token=${servers.expiredToken(-50, '35')}`); // in 50 s
      await other.shows('#state-text', 'Token expires soon');
      await other.tells('0 posts in 5 min');
      await isAccessible(other.page);
      await other.close();
    },

    async 'that the posts are behind is said until they are not'() {
      const visit = await Visit.open('/');
      await visit.page.addInitScript(() => {
        delete globalThis.SharedWorker; // so that the connection is one of the page
        globalThis.WebSocket = class extends WebSocket {
          send(text) {
            const { op, id, path: asked } = JSON.parse(text);
            if (op === 'open' && asked.includes('max_rate=')) globalThis.warn = (warning) => this.onmessage({ data: JSON.stringify({ ...warning, stream: id }) });
            super.send(text);
          }
        };
      });
      await visit.page.goto(`${servers.url}/?#a=malleefowl&range=5m&token=${token()}`);
      await visit.tells('0 posts in 5 min');
      await visit.page.evaluate(() => globalThis.warn({ type: 'warning', code: 'behind', events: 4100, ms: 25_000 }));
      await visit.shows('#state-text', 'Behind by 25 s');
      await visit.shows('#notice-text', 'The posts are 25 s behind (4,100 events): this connection is too slow for them.');
      assert.equal(await visit.page.locator('#state').getAttribute('data-state'), 'behind');
      assert.equal(await visit.page.locator('#try-now').isVisible(), false);
      await isAccessible(visit.page);
      await shoot(visit, 'behind');
      await servers.post('ada', 'a malleefowl, on time');
      await visit.isLive();
      await visit.page.locator('#notice').waitFor({ state: 'hidden' });
      await visit.close();
    },

    async 'posts of the current minute count at once, also where a bucket has a minute'() {
      const visit = await Visit.listen('a=warru&range=24h');
      await visit.tells('0 posts in 24 h');
      await servers.post('ada', 'a warru');
      await visit.row('a warru').waitFor();
      await visit.tells('1 post in 24 h');
      await visit.shows('#rate', '1');
      await visit.shows('#rate-unit', 'posts an hour');
      await visit.close();
    },

    async 'a country alone is a question, live and for a part of the time'() {
      const fay = await servers.sluice('user', 'add', 'fay');
      const headers = { Authorization: `Bearer ${await servers.token('write', fay)}`, 'Content-Type': 'application/json' };
      const place = { name: 'Suva', country: 'FJ', bbox: [178.4, -18.2, 178.5, -18.1] };
      assert.equal((await fetch(`${servers.url}/v1/posts`, { method: 'POST', headers, body: JSON.stringify({ text: 'bula', place }) })).status, 201);
      const visit = await Visit.listen('a=country%3AFJ&range=5m');
      await visit.row('bula').waitFor();
      await visit.tells('1 post in 5 min');
      await visit.page.locator('#timeline canvas').focus();
      for (let i = 0; i < 3; i++) await visit.page.keyboard.press('ArrowLeft');
      await visit.page.locator('#nothing', { hasText: 'No posts in this period.' }).waitFor();
      assert.equal(await visit.page.locator('#error').isVisible(), false);
      await visit.close();
    },

    async 'what is probably wrong with a question is said while it is typed'() {
      const visit = await Visit.listen('a=&range=5m');
      await visit.page.locator('#question').fill('cat or dog');
      await visit.page.locator('#estimate .warning', { hasText: /^Looked for as a word at character 5: cat \^or dog/ }).waitFor();
      await isAccessible(visit.page);
      await shoot(visit, 'warning');
      await visit.page.locator('#question').fill('cat OR dog');
      await visit.page.locator('#estimate .warning').waitFor({ state: 'detached' });
      await visit.close();
    },

    async 'the map takes the colours of the theme, chosen here or by the system'() {
      const visit = await Visit.listen('a=');
      await visit.page.locator('#map.is-there').waitFor();
      const picture = () => visit.page.locator('#map canvas.land').evaluate((canvas) => canvas.toDataURL());
      const light = await picture();
      await visit.page.emulateMedia({ colorScheme: 'dark' });
      await until(async () => await picture() !== light, 'it is dark');
      const dark = await picture();
      await visit.page.getByRole('button', { name: 'Color theme: system. Change' }).click();
      await until(async () => await picture() === light, 'it is light');
      await visit.page.getByRole('button', { name: 'Color theme: light. Change' }).click();
      await until(async () => await picture() === dark, 'it is dark again');
      await visit.close();
    },

    async 'a link has what is seen of the map'() {
      const visit = await Visit.listen('a=&map=4,100,35.7');
      await visit.page.locator('#map.is-there.is-zoomed').waitFor();
      await visit.page.locator('#zoom-in').click();
      await until(() => /[?&#]map=6\.4%2C100%2C35\.\d+/.test(visit.page.url()), 'the address has it');
      for (let i = 0; i < 4; i++) await visit.page.locator('#zoom-out').click();
      await until(() => !visit.page.url().includes('map='), 'all of it needs no word');
      await visit.close();
    },

    async 'what this system has no font for is said, and nothing else'() {
      const texts = { zh: '北京的秋天真好看', ja: 'ひらがなとカタカナ', ko: '안녕하세요', hi: 'नमस्ते दुनिया', ar: 'صباح الخير', emoji: 'bread 🍞' };
      const names = { zh: 'Chinese', ja: 'Japanese', ko: 'Korean', hi: 'Hindi', ar: 'Arabic', emoji: 'emoji' };
      for (const text of Object.values(texts)) await servers.post('ada', `${text} #scripts`);
      const visit = await Visit.listen('a=%23scripts&range=5m');
      await until(async () => await visit.page.locator('.row').count() === 6, 'they are there');
      const said = await visit.page.locator('#fonts').isVisible() ? await visit.text('#fonts') : '';
      for (const [script, name] of Object.entries(names)) {
        const hasFont = await servers.hasFont(script === 'emoji' ? 'und-zsye' : script);
        if (hasFont !== null) assert.equal(said.includes(name), !hasFont, `${name}: ${said}`);
      }
      await shoot(visit, 'scripts');
      await visit.close();
    },

    async 'a token that expires is asked for anew, and with a new one all goes on'() {
      const visit = await Visit.open('/#a=quenda&range=5m');
      await servers.post('ada', 'a quenda before');
      const field = visit.page.getByLabel('Token', { exact: true });
      await field.fill(servers.expiredToken(55, '31')); // valid for five more seconds
      await field.press('Enter');
      await heading(visit, 'This token has expired');
      await visit.page.locator('#token-what', { hasText: 'With a new token, the page continues where it stopped.' }).waitFor();
      await servers.post('ada', 'a quenda meanwhile');
      await isAccessible(visit.page);
      await shoot(visit, 'expired');
      await giveToken(visit, token());
      await visit.row('a quenda meanwhile').waitFor();
      await visit.tells('2 posts in 5 min');
      visit.forgive(/status of 401|WebSocket connection to/);
      await visit.close();
    },

    async 'a token that is taken back ends what it has, and another goes on'() {
      const visit = await listenAs(await servers.token(undefined, '32'), 'a=tammar&range=5m');
      await servers.post('ada', 'a tammar before');
      await visit.row('a tammar before').waitFor();
      assert.equal(await servers.administer('POST', '/v1/revocations', { sub: '32', before: 'now' }), 201);
      await heading(visit, 'This token was revoked');
      await isAccessible(visit.page);
      await visit.page.reload(); // still refused the second time
      await heading(visit, 'This token was revoked');
      await giveToken(visit, token());
      await visit.row('a tammar before').waitFor();
      visit.forgive(/status of 401|WebSocket connection to/);
      await visit.close();
    },

    async 'a connection that an operator ends says so, and waits to be told to connect again'() {
      const visit = await listenAs(await servers.token(undefined, '33'), 'a=euro&range=5m');
      await visit.tells('0 posts in 5 min');
      assert.equal(await servers.administer('DELETE', '/v1/connections?sub=33'), 200);
      await visit.shows('#notice-text', 'This connection was ended by its owner or an operator. Nothing new is shown until you reconnect.');
      assert.equal(await visit.text('#state-text'), 'Disconnected');
      assert.equal(await visit.page.locator('dialog[open]').count(), 0);
      await servers.post('ada', 'a euro meanwhile');
      await visit.ask('euro OR nobodys'); // the query may change: it does not connect by itself
      await until(() => visit.page.url().includes('nobodys'), 'it is asked for');
      assert.equal((await servers.status()).metrics.sluice_streams, 0);
      await visit.shows('#sums', 'unknown');
      await visit.page.locator('#holes', { hasText: 'not connected' }).waitFor();
      await isAccessible(visit.page);
      await shoot(visit, 'ended');
      await visit.page.getByRole('button', { name: 'Reconnect' }).click();
      await visit.row('a euro meanwhile').waitFor();
      await visit.page.locator('#notice').waitFor({ state: 'hidden' });
      await visit.close();
    },

    async 'a connection whose place another takes says so, and does not throw that out by itself'() {
      await withGateway(['--max-connections-per-subject', '1', '--replace-oldest'], async () => {
        const visit = await Visit.listen('a=boodie&range=5m');
        await visit.tells('0 posts in 5 min');
        const other = await fetch(`${servers.url}/v1/stream/firehose`, { headers: { Authorization: `Bearer ${token()}` } });
        await visit.page.locator('#notice-text', { hasText: /^A newer connection replaced this one\. Nothing new is shown/ }).waitFor();
        assert.equal((await servers.status()).metrics.sluice_streams, 1);
        await servers.post('ada', 'a boodie meanwhile');
        await visit.page.getByRole('button', { name: 'Reconnect' }).click();
        await visit.row('a boodie meanwhile').waitFor();
        assert.match(await other.text(), /"code":"replaced"/);
        await visit.close();
      });
    },

    async 'who has had as much as may be is told when there is more'() {
      await withGateway(['--max-events-per-day', '3'], async () => {
        const visit = await Visit.open(`/#a=numbfish&range=5m&token=${await servers.token(undefined, '34')}`);
        for (let i = 0; i < 5; i++) await servers.post('ada', `a numbfish ${i}`);
        await visit.page.locator('#notice-text', { hasText: /^The daily quota is used up\. Next try (at \d\d:\d\d:\d\d|in \d+ s)\.$/ }).waitFor();
        assert.match(await visit.text('#state-text'), /^Next try/);
        await isAccessible(visit.page);
        await shoot(visit, 'quota');
        await visit.page.reload(); // the same in a new page
        await visit.page.locator('#notice-text', { hasText: /Next try/ }).waitFor();
        visit.forgive(/status of 429|WebSocket connection to/);
        await visit.close();
      });
    },

    async 'what the log has let go of is a hole, and the chart says why'() {
      await servers.post('ada', 'a bettong that will be forgotten');
      const kept = await servers.post('ada', 'a bettong');
      await servers.stopGateway();
      await servers.trimLogs(kept);
      await servers.startGateway();
      const visit = await Visit.listen('a=bettong&range=5m');
      await visit.row('a bettong').waitFor();
      await visit.page.locator('#holes', { hasText: /^\d\d:\d\d:\d\d to \d\d:\d\d:\d\d no longer kept$/ }).waitFor();
      await visit.page.keyboard.press('t');
      await visit.page.locator('#timeline-table td', { hasText: 'unknown' }).first().waitFor();
      await visit.page.keyboard.press('t');
      await isAccessible(visit.page);
      await shoot(visit, 'gap');
      await visit.close();
    },
  };
}
