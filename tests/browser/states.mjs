// states.mjs - the page at / when something is not as it should be, or is looked at closely.
//
// What leaves a gap in the log comes last: it would be in the numbers of the others.
import assert from 'node:assert/strict';
import path from 'node:path';

export function stateTests({ Visit, servers, until, isAccessible, folder, token }) {
  const shoot = (visit, name) => visit.page.screenshot({ path: path.join(folder, `live-${name}.png`) });

  return {
    async 'a post says which question it is there for, and which part of it'() {
      await servers.post('ada', 'a pademelon in the rain', '--lang', 'en');
      const visit = await Visit.listen('a=%28pademelon+OR+nobodys%29+lang%3Aen&b=rain&c=nobody&focus=a');
      await visit.row('a pademelon').locator('.text').click();
      await until(async () => await visit.row('a pademelon').locator('.why').textContent()
        === 'a(pademelon OR nobodys) lang:en: by pademelon, lang:enbrain', 'it is said');
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
      await visit.page.getByRole('button', { name: 'The same by the API' }).click();
      for (const title of ['Posts', 'The chart', 'Languages']) await visit.page.locator('summary', { hasText: `${title} as JSON` }).click();
      await isAccessible(visit.page);
      const json = async (name) => JSON.parse(await visit.text(`#json-${name}`));
      assert.equal((await json('posts')).length, 60);
      assert.equal((await json('chart')).lines[0].counts.reduce((all, { posts }) => all + posts, 0), 64);
      assert.equal((await json('lang')).groups.reduce((all, { posts }) => all + posts, 0), 64);
      await visit.close();
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
      await visit.page.locator('#timeline-table td', { hasText: 'not known' }).first().waitFor();
      await visit.page.keyboard.press('t');
      await isAccessible(visit.page);
      await shoot(visit, 'gap');
      await visit.close();
    },
  };
}
