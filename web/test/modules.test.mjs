// Tests the modules of the pages that do not need a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Buckets } from '../src/buckets.js';
import { formatChange, formatRate, sparkline } from '../src/chips.js';
import { ServerClock } from '../src/clock.js';
import { curlCommand, exportCommand, tailCommand } from '../src/command.js';
import { describe, estimateBody, obstacles } from '../src/estimate.js';
import { formerQuestion } from '../src/former.js';
import { describeFault } from '../src/fault.js';
import { Gaps } from '../src/gaps.js';
import { formatBound, formatBytes, formatCount, formatSeconds } from '../src/format.js';
import { workerState } from '../src/health.js';
import { timeOfId } from '../src/ids.js';
import { stepBounds } from '../src/steps.js';
import { boxesOf, countsPath, leaveOut, narrow, postsPath, termsOf } from '../src/question.js';
import { Past } from '../src/past.js';
import { ceiling, holes, linePath } from '../src/plots.js';
import { formatFactor, mergeTerms, ruleOf } from '../src/rising.js';
import { Samples, sum } from '../src/samples.js';
import { directionOf, splitText } from '../src/text.js';
import { describeState } from '../src/state.js';
import { niceTicks, spread } from '../src/timeline.js';
import { View } from '../src/view.js';

const marked = (text) => splitText(text).filter(({ kind }) => kind !== 'text').map(({ text: part }) => part);

test('links, hashtags and mentions are found in every script', () => {
  assert.deepEqual(marked('Slides: https://talks.example/quiet-ui. #a11y'), ['https://talks.example/quiet-ui', '#a11y']);
  assert.deepEqual(marked('看http://t.cn/Ab1，好 #北京# 天气'), ['http://t.cn/Ab1', '#北京#']);
  assert.deepEqual(marked('البحر #الإسكندرية @ليلى'), ['#الإسكندرية', '@ليلى']);
  assert.deepEqual(marked('a#b me@b.c #2024 xhttp://no &#39;'), []);
  assert.deepEqual(marked('(see https://example.org/a_(b)).'), ['https://example.org/a_(b']);
  assert.deepEqual(marked('#one#two'), ['#one#']);
});

test('addresses of the page before are questions', () => {
  const asked = (parameters) => formerQuestion(new URLSearchParams(parameters).toString());
  assert.equal(asked({ stream: 'filter', track: 'night train, #tea' }), 'night train OR #tea');
  assert.equal(asked({ stream: 'filter', track: '-x 12:30 OR', language: 'en,de' }), '"-x" "12:30" "OR" (lang:en OR lang:de)');
  assert.equal(asked({ stream: 'filter', follow: '42,@ada', language: 'en' }), '(from:42 OR to:42 OR repost_of:42 OR from:@ada OR @ada) lang:en');
  assert.equal(asked({ stream: 'filter', locations: '-0.5,51,0.5,52', rule: 'cat OR dog' }), 'bounding_box:[-0.5 51 0.5 52] OR cat OR dog');
  assert.equal(asked({ stream: 'filter', rule: 'cat OR dog', language: 'ja' }), '(cat OR dog) lang:ja');
  assert.equal(asked({ stream: 'filter' }), null);
  assert.equal(asked({ stream: 'firehose' }), '');
  assert.equal(asked({ stream: 'firehose', language: 'ja' }), 'lang:ja');
  assert.equal(asked({ stream: 'sample', percent: '5' }), 'sample:5%');
  assert.equal(asked({ stream: 'home' }), 'home:');
  assert.equal(asked({ a: 'tea' }), null);
});

test('a hole has the words of the gap that it is of', () => {
  const gaps = new Gaps();
  const id = (s) => String(s * 1000 * 4096);
  assert.equal(gaps.take({ from: '0', to: id(10), reason: 'retention' }), true);
  assert.equal(gaps.take({ from: '0', to: id(10), reason: 'retention' }), false);
  gaps.take({ from: id(20), to: id(30), reason: 'rewound' });
  const at = (from, to) => gaps.wordsAt(timeOfId(id(from)), timeOfId(id(to)));
  assert.equal(at(1, 2), 'no longer kept');
  assert.equal(at(11, 20), null);
  assert.equal(at(29, 31), 'lost in a failover of Redis');
});

test('the terms of a question are those that a post may match it by', () => {
  assert.deepEqual(termsOf('(coffee OR "black tea") lang:en -milk'), ['coffee', '"black tea"', 'lang:en']);
  assert.deepEqual(termsOf('a (b (c OR d)) bounding_box:[1 2 3 4] a'), ['a', 'b', 'c', 'd', 'bounding_box:[1 2 3 4]']);
  assert.deepEqual(termsOf(''), []);
});

test('the parts of a text are the text', () => {
  for (const text of ['', '#', 'https://', '##x##', '👩‍🚀 @a@b #c#d https://e.f/#g', 'a\n#b\n']) {
    assert.equal(splitText(text).map(({ text: part }) => part).join(''), text);
  }
});

test('a text has the direction of its own words', () => {
  const direction = (text) => directionOf(splitText(text));
  assert.equal(direction('@noa כל ספר של קישון'), 'rtl');
  assert.equal(direction('https://x.example #tag صباح الخير'), 'rtl');
  assert.equal(direction('@ליאור good morning'), 'ltr');
  assert.equal(direction('«Привет», шалом'), 'ltr');
  assert.equal(direction('#שלום 123 ☕'), 'auto');
});

test('commands can be pasted, whatever is asked for', () => {
  const request = { path: '/v1/stream/filter', parameters: new URLSearchParams([['track', "it's $HOME, `tea`"], ['language', 'en']]) };
  assert.equal(curlCommand('http://127.0.0.1:8080', request),
    'curl -N -G -H "Authorization: Bearer $TOKEN" \\\n'
    + "  --data-urlencode 'track=it'\\''s $HOME, `tea`' \\\n  --data-urlencode language=en \\\n"
    + '  http://127.0.0.1:8080/v1/stream/filter');
  assert.equal(tailCommand('http://127.0.0.1:8080', request),
    'sluice tail --url http://127.0.0.1:8080 \\\n  --token "$TOKEN" filter \\\n'
    + "  --track 'it'\\''s $HOME, `tea`' \\\n  --language en");
  assert.equal(exportCommand('a;b'), "export TOKEN='a;b'");
});

test('an id says when it was minted', () => {
  assert.equal(new Date(timeOfId('114677036875776')).toISOString(), '2026-11-21T01:02:03.456Z');
  assert.equal(timeOfId('4096'), Date.UTC(2026, 0, 1) + 1);
});

test('two looks at the status give rates, ratios and times', () => {
  const samples = new Samples();
  const look = (now_ms, events, cpu, buckets) => ({ now_ms, bounds: [0.001, 0.01],
    metrics: { sluice_events_received_total: events, cpu, by: { a: events, b: 1 } },
    histograms: { time: { sum: 1, buckets } } });
  samples.push(look(1000, 10, [1, 2], [5, 0, 0]));
  assert.equal(samples.rate('sluice_events_received_total', 5), null);
  assert.equal(samples.quantile('time', 0.5, 5), null);
  samples.push(look(3000, 30, [2, 3], [5, 0, 0]));
  samples.push(look(5000, 110, [2, 4], [5, 98, 2]));
  assert.equal(samples.rate('sluice_events_received_total', 2), 40);
  assert.equal(samples.rate('sluice_events_received_total', 60), 25);
  assert.equal(samples.ratio('cpu', 'sluice_events_received_total', 60), 3 / 100);
  assert.equal(samples.rate('missing', 2), null);
  assert.equal(samples.value('by'), 111);
  assert.equal(samples.quantile('time', 0.5, 60), 0.01);
  assert.equal(samples.quantile('time', 0.99, 60), Infinity);
  samples.push(look(6000, 3, [0, 0], [0, 0, 0])); // after a restart
  assert.equal(samples.rate('sluice_events_received_total', 60), null);
  samples.push(look(90_000, 3, [0, 0], [0, 0, 0]));
  assert.equal(samples.all.length, 1);
  assert.equal(sum(undefined), null);
});

test('numbers are short and keep their meaning', () => {
  assert.deepEqual([null, 0, 3.14159, 999.4, 12_345, 2_345_678].map(formatCount), ['–', '0', '3.1', '999', '12,345', '2.35M']);
  assert.deepEqual([null, 0, 999, 1500, 61e6].map(formatBytes), ['–', '0 B', '999 B', '1.5 kB', '61 MB']);
  assert.deepEqual([null, 0, 0.0000021, 0.0005, 0.25, 1.84, 120, 7200, 400_000, Infinity].map(formatSeconds),
    ['–', '0 ms', '2.1 µs', '500 µs', '250 ms', '1.8 s', '2 min', '2.0 h', '5 days', '> 10 s']);
  assert.deepEqual([null, 0.0002, 13, Infinity].map(formatBound), ['–', '≤ 200 µs', '≤ 13 s', '> 10 s']);
});

test('a worker that hears everything, and whose commands Redis does not answer, is not ready', () => {
  const metrics = { sluice_worker_up: [1, 1], sluice_worker_subscribed: [1, 1], sluice_worker_ready: [1, 0] };
  assert.equal(workerState(metrics, 0), 'ready');
  assert.equal(workerState(metrics, 1), 'not ready');
  metrics.sluice_worker_subscribed = [1, 0];
  assert.equal(workerState(metrics, 1), 'Redis away');
  metrics.sluice_worker_up = [1, 0];
  assert.equal(workerState(metrics, 1), 'down');
});

const START = Date.UTC(2026, 10, 22, 16, 0, 0);
const sampleAt = (i, more = {}) => ({ at: new Date(START + i * 5000).toISOString(), events_in: i, ...more });
const answerAt = (i, more) => ({ now_ms: START + i * 5000 + 100, metrics: { sluice_start_time_seconds: 1 }, ...more });

test('the past is put together from what is new', () => {
  const past = new Past();
  assert.equal(past.since, null);
  const begun = { number: 1, level: 'warning', begin: new Date(START).toISOString(), end: null, text: 'behind' };
  assert.equal(past.take(answerAt(2, { samples: [sampleAt(1), sampleAt(2)], incidents: [begun] })), true);
  assert.ok(past.since < START + 2 * 5000);
  assert.equal(past.take(answerAt(2.5, { samples: [], incidents: [] })), false);
  past.take(answerAt(4, { samples: [sampleAt(2), sampleAt(4)], incidents: [{ ...begun, end: new Date(START + 9000).toISOString() }] }));
  assert.deepEqual(past.samples.map((one) => one.events_in), [1, 2, 4]);
  assert.deepEqual(past.incidents.map(({ to }) => to), [START + 9000]);
  const slots = past.slots();
  assert.equal(slots.length, 180);
  assert.deepEqual(slots.slice(-4).map((slot) => slot.events_in ?? 'hole'), [1, 2, 'hole', 4]);
  assert.deepEqual(holes(slots), [[178, 1]]); // the time before the first sample is not a hole
  for (let i = 5; i < 300; i++) past.take(answerAt(i, { samples: [sampleAt(i)] }));
  assert.equal(past.samples.length, 180);
  past.take({ ...answerAt(400, { samples: [sampleAt(400)] }), metrics: { sluice_start_time_seconds: 2 } });
  assert.equal(past.samples.length, 1); // of the restarted sluiced
  assert.equal(past.incidents.length, 0);
});

test('a line has no point where nothing is known', () => {
  assert.equal(linePath([0, null, 10], 10), 'M0.5 39.0h.01M2.5 2.0h.01');
  assert.match(linePath([5, 5, undefined, 0], 10), /^M0\.5 20\.5h\.01L1\.5 20\.5M3\.5 39\.0h\.01$/);
  assert.deepEqual([0, 0.3, 1, 3, 70, 120].map(ceiling), [1, 0.5, 1, 5, 100, 200]);
});

const second = (n, posts, more = {}) => ({ type: 'counts', start: new Date(n * 1000).toISOString(), posts, deletes: 0, ...more });

test('what is wrong with a rule is said with the hint of the server, and without its excerpt', () => {
  const said = (message, text, at) => describeFault(message, text, at);
  assert.equal(said("unknown operator 'lng:' at character 1: ^lng:en tea; to look for such a word, quote it; did you mean lang:?", 'lng:en tea', 0),
    "Unknown operator 'lng:'. To look for such a word, quote it; did you mean lang:?");
  assert.equal(said('a term is missing at the end: tea OR^; a word is expected there', 'tea OR', 6), 'A term is missing. A word is expected there.');
  assert.equal(said('closing parenthesis missing at the end: (a; b^', '(a; b', 5), 'Closing parenthesis missing.');
  const long = `${'x'.repeat(30)} colour:red ${'y'.repeat(30)}`;
  assert.equal(said(`unknown operator 'colour:' at character 32: ...${'x'.repeat(23)} ^colour:red ${'y'.repeat(13)}...; to look for such a word, quote it`, long, 31),
    "Unknown operator 'colour:'. To look for such a word, quote it.");
  assert.equal(said('rule is empty', '', 0), 'Rule is empty.');
});

test('labels at the same place are moved apart, and stay within the chart', () => {
  assert.deepEqual(spread([50, 10], 13, 0, 100), [50, 10]);
  assert.deepEqual(spread([50, 50, 52], 13, 0, 100), [50, 63, 76]);
  assert.deepEqual(spread([100, 100, 100], 13, 0, 100), [74, 87, 100]);
  assert.deepEqual(spread([28, 28, 28], 13, 14, 28), [14, 21, 28]); // on a phone
  assert.deepEqual(spread([200], 13, 0, 100), [100]);
  assert.deepEqual(spread([], 13, 0, 100), []);
});

test('the current bucket counts as far as it is known, but is no rate', () => {
  const buckets = new Buckets(60_000);
  const bucket = (minute, posts, more) => ({ start: new Date(minute * 60_000).toISOString(), posts, deletes: 0, ...more });
  buckets.take(bucket(0, 4));
  assert.equal(buckets.reach, 60_000);
  buckets.take(bucket(1, 3, { partial: true }));
  assert.equal(buckets.reach, 120_000);
  assert.equal(buckets.sum(0, buckets.reach).posts, 7);
  assert.equal(buckets.sum(0, buckets.end).posts, 4);
  assert.equal(buckets.perSecond, 4 / 60);
  buckets.take(bucket(1, 5));
  assert.equal(buckets.sum(0, buckets.reach).posts, 9);
});

test('a bucket that was not told, or only in part, is unknown and not zero', () => {
  const buckets = new Buckets(1000);
  for (const message of [second(10, 4), second(11, 0), second(13, 2), second(14, 7, { gap: true })]) buckets.take(message);
  assert.deepEqual(buckets.sum(10_000, 15_000), { posts: 6, deletes: 0, known: 3, unknown: 2 });
  assert.equal(buckets.at(12_000), null);
  assert.equal(buckets.rate(12_000, 13_000), null);
  assert.equal(buckets.rate(10_000, 12_000), 2);
  assert.equal(buckets.lastPost, 14_000);
  buckets.take(second(12, 1));
  buckets.take(second(14, 8, { revision: 1 }));
  assert.deepEqual(buckets.sum(10_000, 15_000), { posts: 15, deletes: 0, known: 5, unknown: 0 });
  assert.equal(buckets.perSecond, 8);
  buckets.forgetBefore(13_000);
  assert.equal(buckets.sum(10_000, 15_000).known, 2);
});

test('the running bucket counts for groups, until the whole one comes', () => {
  const buckets = new Buckets(10_000);
  const groups = (en, ja) => ({ groups: [{ key: 'ja', posts: ja }, { key: 'en', posts: en }], other: 1 });
  buckets.take(second(10, 9, groups(5, 4)));
  buckets.take(second(20, 3, { ...groups(2, 1), partial: true }));
  assert.deepEqual(buckets.groups(10_000, 30_000), { groups: [['en', 7], ['ja', 5]], rest: 2 });
  assert.equal(buckets.end, 20_000);
  buckets.take(second(20, 5, groups(4, 1)));
  assert.deepEqual(buckets.groups(10_000, 30_000), { groups: [['en', 9], ['ja', 5]], rest: 2 });
});

test('a change is against what was before', () => {
  const buckets = new Buckets(1000);
  for (let n = 0; n < 60; n++) buckets.take(second(n, n < 56 ? 10 : 15));
  assert.equal(buckets.change(0, 60_000), 0.5);
  assert.equal(new Buckets(1000).change(0, 60_000), null);
  assert.deepEqual([0.184, -0.5, null].map(formatChange), ['+18%', '−50%', '']);
  assert.deepEqual([null, 0, 1234.4, 0.2, 0.001].map(formatRate), ['–', '0/s', '1,234/s', '12/min', '4/h']);
  assert.equal(sparkline(buckets, 60_000, 120_000), '');
  assert.equal(sparkline(buckets, 0, 60_000).split(' ').length, 24);
});

test('a question is a request of the stream that has it', () => {
  assert.equal(countsPath('', { bucket: '1s' }), '/v1/stream/counts?bucket=1s');
  assert.equal(countsPath('tea OR "a b"', { bucket: '1s' }), '/v1/stream/counts?rule=tea+OR+%22a+b%22&bucket=1s');
  assert.equal(countsPath('home:', {}), null);
  assert.equal(postsPath('', {}), '/v1/stream/firehose');
  assert.equal(postsPath('lang:zh-TW', { last: '5' }), '/v1/stream/firehose?language=zh-TW&last=5');
  assert.equal(postsPath('sample:0.5%', {}), '/v1/stream/sample?percent=0.5');
  assert.equal(postsPath('home:', {}), '/v1/stream/home');
  assert.equal(postsPath('lang:ja tea', {}), '/v1/stream/filter?rule=lang%3Aja+tea');
});

test('a question is narrowed, and keeps what it was', () => {
  assert.equal(narrow('', 'lang:ja'), 'lang:ja');
  assert.equal(narrow('home:', 'tea'), 'tea');
  assert.equal(narrow('tea', 'lang:ja'), 'tea lang:ja');
  assert.equal(narrow('tea lang:en', 'lang:ja'), 'tea lang:ja');
  assert.equal(narrow('tea OR "a OR b"', 'lang:ja'), '(tea OR "a OR b") lang:ja');
  assert.equal(narrow('(tea OR coffee) lang:en', 'country:BR'), '(tea OR coffee) lang:en country:BR');
  assert.equal(narrow('tea bounding_box:[1 2 3 4]', 'bounding_box:[5 6 7 8]'), 'tea bounding_box:[5 6 7 8]');
  assert.equal(narrow('#rain', '#rain'), '#rain');
  assert.deepEqual(boxesOf('tea bounding_box:[1, 2.5 -3 4] bounding_box:[x]'), [[1, 2.5, -3, 4]]);
});

test('a link has all that is asked for, and nothing else', () => {
  const view = new View();
  assert.equal(view.fragment, 'a=');
  view.question = 'tea & milk';
  assert.equal(view.add('茶'), true);
  assert.equal(view.add('c'), true);
  assert.equal(view.add('茶'), true);
  assert.equal(view.focus, 1);
  assert.equal(view.add('d'), true);
  assert.equal(view.add('e'), false);
  view.remove(2);
  view.range = '1h';
  view.isLog = true;
  view.brush = { from: Date.UTC(2026, 10, 22, 16, 48, 10), to: Date.UTC(2026, 10, 22, 16, 48, 40) };
  const other = new View();
  assert.equal(other.recall(view.fragment), true);
  assert.deepEqual(other, view);
  assert.equal(new View().recall('token=x'), false);
  assert.equal(other.recall('b=x&focus=d&range=9y&t=5/4'), true);
  assert.deepEqual([other.focus, other.range, other.brush, other.slots], [1, '15m', null, [1]]);
});

test('the clock of the server is learnt from buckets that come as they end', () => {
  const clock = new ServerClock();
  clock.heard(1_000_000, 1000, 5_000_000); // the past
  assert.equal(clock.now(5_000_000), 5_000_000);
  for (let n = 1; n <= 4; n++) clock.heard(1_000_000 + n * 1000, 1000, 5_000_000 + n * 1000);
  assert.equal(clock.now(5_004_000), 1_004_000);
  clock.heard(9_000_000, 1000, 5_004_100);
  assert.equal(clock.now(5_004_100), 9_000_000);
});

test('the state of the connection is a few words, and a sentence if something is wrong', () => {
  const say = (state, more) => describeState({ state, until: 0, away: null, ...more });
  assert.deepEqual(say({ name: 'live' }, {}), { name: 'live', words: 'Live' });
  assert.equal(say({ name: 'live' }, { tripMs: 0.2 }).words, 'Live · 1 ms');
  assert.equal(say({ name: 'live' }, { tripMs: 3.4, isReading: true }).words, 'Loading the past');
  assert.deepEqual(say({ name: 'live' }, { isExpiring: true, isReading: true }), { name: 'behind', words: 'Token expires soon' });
  assert.deepEqual(say({ name: 'live' }, { behind: { events: 4100, ms: 25_000 }, isExpiring: true }),
    { name: 'behind', words: 'Behind by 25 s', notice: 'The posts are 25 s behind (4,100 events): this connection is too slow for them.' });
  assert.equal(say({ name: 'live' }, { isSilent: true, away: 7, behind: { events: 1, ms: 1 } }).words, 'No counts for 7 s');
  assert.match(say({ name: 'live', held: 2 }, {}).notice, /: 2 parts of this page wait\.$/);
  const until = Date.now() + 3500;
  assert.deepEqual(say({ name: 'waiting' }, { until, away: 12 }),
    { name: 'waiting', words: 'Next try in 4 s', notice: 'The server does not answer. No answer for 12 s. Next try in 4 s.' });
  assert.equal(say({ name: 'waiting', error: { code: 'quota', reason: 'enough for today' } }, { until, away: 12 }).notice, 'Enough for today. Next try in 4 s.');
  assert.equal(say({ name: 'ended', error: { code: 'replaced', reason: 'replaced' } }, {}).words, 'Disconnected');
  assert.deepEqual(say({ name: 'ended', error: { code: 'token_expired', reason: 'x' } }, {}), { name: 'ended', words: 'Refused' });
});

test('axes have round numbers', () => {
  assert.deepEqual(niceTicks(4), [0, 1, 2, 3, 4]);
  assert.deepEqual(niceTicks(1006), [0, 500, 1000, 1500]);
  assert.deepEqual(stepBounds(1000), [4, 16, 63, 251, 1000]);
  assert.deepEqual(stepBounds(2), [1, 2]);
});

test('what rises is told once, and can be asked for', () => {
  const term = (name, score) => ({ term: name, score, users: 7, before: 2 });
  assert.deepEqual(mergeTerms([[term('#rain', 5)], [term('rain', 9), term('早茶', 7), term('rains', 1)]]).map((one) => one.term), ['早茶', '#rain', 'rains']);
  assert.deepEqual(['#rain', '早茶', 'example.org/a', "don't"].map(ruleOf), ['#rain', '早茶', '"example.org/a"', '"don\'t"']);
  assert.deepEqual([formatFactor(term('a', 1)), formatFactor({ users: 3, before: 0 })], ['×3.5', 'new']);
});

test('an estimate is a line, and says what stands in the way', () => {
  assert.deepEqual(estimateBody('tea'), { filter: { rule: 'tea' }, since: '-10m' });
  assert.deepEqual(estimateBody('lang:ja'), { filter: { firehose: true, language: 'ja' }, since: '-10m' });
  assert.equal(estimateBody('home:'), null);
  const answer = { events: 41, per_second: 41.2, share: 0.0409, bytes_per_second: 2600,
    parts: [{ value: 'coffee', events: 28 }, { value: '茶', events: 0 }] };
  assert.deepEqual(describe(answer), { line: '≈ 41/s · 4.1% of all · 2.6 kB/s', parts: [{ text: 'coffee 28', isNone: false }, { text: '茶 0', isNone: true }] });
  assert.deepEqual(obstacles(answer), []);
  const none = { ...answer, events: 0, parts: [{ value: 'tea', events: 9, without: 0 }, { value: 'lang:ga', events: 0, without: 9 }] };
  assert.equal(describe(none).line, 'None in the last 10 min');
  assert.deepEqual(obstacles(none).map(({ value }) => leaveOut('tea lang:ga', value)), ['tea']);
});
