// The modules of the pages that need no browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { curlCommand, exportCommand, tailCommand } from '../src/command.js';
import { formatBound, formatBytes, formatCount, formatSeconds } from '../src/format.js';
import { health, workerState } from '../src/health.js';
import { timeOfId } from '../src/ids.js';
import { Samples, sum } from '../src/samples.js';
import { makeEventReader } from '../src/stream.js';
import { directionOf, splitText } from '../src/text.js';

const marked = (text) => splitText(text).filter(({ kind }) => kind !== 'text').map(({ text: part }) => part);

test('links, hashtags and mentions are found in every script', () => {
  assert.deepEqual(marked('Slides: https://talks.example/quiet-ui. #a11y'), ['https://talks.example/quiet-ui', '#a11y']);
  assert.deepEqual(marked('看http://t.cn/Ab1，好 #北京# 天气'), ['http://t.cn/Ab1', '#北京#']);
  assert.deepEqual(marked('البحر #الإسكندرية @ليلى'), ['#الإسكندرية', '@ليلى']);
  assert.deepEqual(marked('a#b me@b.c #2024 xhttp://no &#39;'), []);
  assert.deepEqual(marked('(see https://example.org/a_(b)).'), ['https://example.org/a_(b']);
  assert.deepEqual(marked('#one#two'), ['#one#']);
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

test('a stream of events is read the same wherever it is cut', () => {
  const stream = 'id: 7\n\n:\n\nid: 8\nevent: post\ndata: {"a":1}\n\nevent: gap\r\ndata: {"b":2}\r\n\r\nid\ndata\n\nretry: 5\n\n';
  const read = (pieces) => {
    const blocks = [];
    const reader = makeEventReader(({ id, event, data }) => blocks.push([id, event, data]));
    pieces.forEach(reader);
    return blocks;
  };
  const whole = read([stream]);
  assert.deepEqual(whole, [['7', 'message', null], [undefined, 'message', null], ['8', 'post', '{"a":1}'],
    [undefined, 'gap', '{"b":2}'], ['', 'message', ''], [undefined, 'message', null]]);
  assert.deepEqual(read([...stream]), whole);
  for (let cut = 1; cut < stream.length; cut++) {
    assert.deepEqual(read([stream.slice(0, cut), stream.slice(cut)]), whole);
  }
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
  samples.push(look(6000, 3, [0, 0], [0, 0, 0])); // it was restarted
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

test('a worker that hears everything, and whose commands Redis does not answer, is not well', () => {
  const metrics = { sluice_worker_up: [1, 1], sluice_worker_subscribed: [1, 1], sluice_worker_ready: [1, 0] };
  assert.deepEqual(health({ metrics }), { isWell: false, text: '1 of 2 workers not ready' });
  assert.equal(workerState(metrics, 0), 'ready');
  assert.equal(workerState(metrics, 1), 'not ready');
  metrics.sluice_worker_subscribed = [1, 0];
  assert.deepEqual(health({ metrics }), { isWell: false, text: 'Redis is away' });
  assert.equal(workerState(metrics, 1), 'Redis away');
  metrics.sluice_worker_up = [1, 0];
  assert.deepEqual(health({ metrics }), { isWell: false, text: '1 of 2 workers down' });
  assert.equal(workerState(metrics, 1), 'down');
});

test('all is well while every worker is ready and no part fails', () => {
  const metrics = { sluice_worker_up: [1], sluice_worker_subscribed: [1], sluice_worker_ready: [1] };
  const parts = { streams: { state: 'ok' }, writes: { state: 'ok' }, archive: { state: 'off' } };
  assert.deepEqual(health({ metrics, health: parts }), { isWell: true, text: 'All well' });
  parts.writes.state = 'failing';
  assert.deepEqual(health({ metrics, health: parts }), { isWell: false, text: 'Failing: writes' });
});
