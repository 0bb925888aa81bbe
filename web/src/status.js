// status.js - the page at /status: how this server fares, asked once a second.

import { Chart } from './chart.js';
import { $, announce, make } from './dom.js';
import { formatBound, formatBytes, formatCount, formatRatio, formatSeconds } from './format.js';
import { health, workerState } from './health.js';
import { clockTime } from './ids.js';
import { Samples, sum } from './samples.js';
import { startTheme } from './theme.js';
import { getToken, setToken, takeTokenFromAddress } from './token.js';

const EVERY_MS = 1000;
const SHORT_S = 5; // rates
const LONG_S = 15; // what is measured less often: the workers' CPU
const MINUTE_S = 60;

const STREAMS = ['filter', 'sample', 'firehose', 'home', 'many'];
const TRANSPORTS = ['websocket', 'ndjson', 'delimited', 'sse'];
const TIMES = {
  'sluice_match_seconds': 'Matching an event',
  'sluice_delivery_seconds': 'From Redis to a socket',
  'sluice_redis_round_trip_seconds': 'Redis, round trip',
};

// What should not happen, or not often: family, labels (all but those listed) and words for it.
const LOSSES = [
  ['sluice_disconnects_total', 'Streams ended', ['draining', 'token_expired']],
  ['sluice_broken_connections_total', 'Connections broken'],
  ['sluice_streams_refused_total', 'Streams refused, limit of the'],
  ['sluice_tokens_refused_total', 'Tokens refused'],
  ['sluice_handshakes_dropped_total', 'Handshakes dropped'],
  ['sluice_accept_exhausted_total', 'Connections closed for lack of descriptors'],
  ['sluice_events_refused_total', 'Events refused'],
  ['sluice_event_gaps_total', 'Gaps between events'],
  ['sluice_gaps_told_total', 'Gaps told to clients'],
  ['sluice_redis_subscriptions_lost_total', 'Subscriptions to Redis lost'],
  ['sluice_redis_master_moves_total', 'Moves to another Redis, as sentinels said'],
  ['sluice_log_read_failures_total', 'Log batches not read'],
  ['sluice_event_bytes_exceeded_total', 'Times that all queues together were too long'],
  ['sluice_tasks_dead', 'Dead letters'],
  ['sluice_worker_restarts_total', 'Workers started again'],
  ['sluice_worker_hangs_total', 'Workers killed because they hung'],
  ['sluice_task_runner_restarts_total', 'Process that runs tasks started again'],
  ['sluice_private_redis_restarts_total', 'Private Redis started again'],
];

startTheme();
takeTokenFromAddress();

const samples = new Samples();
const chartIn = new Chart($('#chart-in'), [{ label: 'in', colour: 'accent', fill: true }], { format: formatCount });
const chartOut = new Chart($('#chart-out'), [{ label: 'out', colour: 'good', fill: true }], { format: formatCount });

const put = (id, text) => {
  const element = $(`#${id}`);
  if (element.textContent !== text) element.textContent = text;
};

// Rows are kept and only their text changes, so that a screen reader or a selection stays put.
function fillTable(id, rows) {
  const body = $(`#${id} tbody`);
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  rows.forEach((cells, i) => {
    const row = body.rows[i] ?? body.appendChild(make('tr', {}, make('th', { scope: 'row' }),
      ...cells.slice(1).map(() => make('td'))));
    cells.forEach((text, k) => {
      if (row.cells[k].textContent !== text) row.cells[k].textContent = text;
      row.cells[k].classList.toggle('zero', k > 0 && text === '0');
    });
  });
}

// --- what is seen ---

// Each worker hears, and counts, every event.
const hearing = () => Math.max(1, samples.value('sluice_worker_subscribed'));

function eventsIn(seconds) {
  const rate = samples.rate('sluice_events_received_total', seconds);
  return rate === null ? null : rate / hearing();
}

function showTiles() {
  const value = (name) => samples.value(name);
  const dropped = (samples.latest.metrics.sluice_disconnects_total?.too_slow ?? 0)
    + value('sluice_broken_connections_total');
  const cpu = samples.ratio('sluice_worker_cpu_seconds_total', 'sluice_deliveries_total', LONG_S);
  const share = samples.rate('sluice_worker_cpu_seconds_total', LONG_S);
  const matches = samples.ratio('sluice_matches_total', 'sluice_events_received_total', SHORT_S);
  put('streams', formatCount(value('sluice_streams')));
  const connections = value('sluice_connections');
  put('connections', `${formatCount(connections)} ${connections === 1 ? 'connection' : 'connections'}`);
  put('events-in', formatCount(eventsIn(SHORT_S)));
  put('events-out', formatCount(samples.rate('sluice_deliveries_total', SHORT_S)));
  put('bytes-out', `a second, ${formatBytes(samples.rate('sluice_delivered_bytes_total', SHORT_S))}`);
  put('matches', formatRatio(matches === null ? null : matches * hearing()));
  put('queued', formatCount(value('sluice_owed_events')));
  put('queued-bytes', `events, ${formatBytes(value('sluice_owed_bytes'))}`);
  put('catching-up', formatCount(value('sluice_streams_catching_up')));
  put('behind', `streams, ${formatCount(value('sluice_streams_behind'))} with a full socket`);
  put('dropped', formatCount(dropped));
  put('gaps', formatCount(value('sluice_event_gaps_total')));
  put('gaps-told', `${formatCount(value('sluice_gaps_told_total'))} told to clients`);
  put('redis', formatBound(samples.quantile('sluice_redis_round_trip_seconds', 0.5, LONG_S)));
  put('memory', formatBytes(value('sluice_worker_resident_bytes')));
  put('event-memory', `${formatBytes(value('sluice_event_bytes'))} in events`);
  put('cpu', formatSeconds(cpu));
  put('cpu-share', `per delivery, ${share === null ? '–' : `${Math.round(share * 100)} %`} of a core`);
  put('up', formatSeconds(samples.latest.now_ms / 1000 - value('sluice_start_time_seconds')));
  put('version', `sluiced ${samples.latest.version}`);
}

function showKinds() {
  const kinds = samples.latest.metrics.sluice_streams_by_kind;
  const of = (stream, transport) => kinds[`${stream}/${transport}`] ?? 0;
  const line = (name, counts) => [name, ...counts.map(formatCount), formatCount(sum(counts))];
  fillTable('kinds', [
    ...STREAMS.map((stream) => line(stream, TRANSPORTS.map((transport) => of(stream, transport)))),
    line('all', TRANSPORTS.map((transport) => sum(STREAMS.map((stream) => of(stream, transport))))),
  ]);
}

function showTimes() {
  fillTable('times', Object.entries(TIMES).map(([name, words]) => [words,
    ...[0.5, 0.99, 0.999].map((q) => formatBound(samples.quantile(name, q, MINUTE_S)))]));
}

function showSlow() {
  const { slowest, subjects } = samples.latest;
  fillTable('slow', slowest.map((slow) => [
    slow.subject ?? 'not shown', slow.stream, slow.transport,
    formatSeconds(slow.lag_ms / 1000) + (slow.catching_up ? ', catching up' : ''),
    formatCount(slow.owed_events), formatBytes(slow.owed_bytes),
    formatSeconds(slow.connected_ms / 1000), String(slow.worker)]));
  $('#slow').hidden = slowest.length === 0;
  $('#nobody-slow').hidden = slowest.length > 0;
  $('#ask-token').hidden = subjects;
}

function showWorkers() {
  const { metrics } = samples.latest;
  const before = samples.before(LONG_S);
  const passed = (samples.latest.now_ms - before.now_ms) / 1000;
  fillTable('workers', metrics.sluice_worker_up.map((_, i) => {
    const cpu = metrics.sluice_worker_cpu_seconds_total[i] - before.metrics.sluice_worker_cpu_seconds_total[i];
    return [String(i), workerState(metrics, i),
      passed > 0 ? `${Math.max(0, Math.round((cpu / passed) * 100))} %` : '–',
      formatBytes(metrics.sluice_worker_resident_bytes[i]),
      formatCount(metrics.sluice_worker_open_files[i]),
      formatCount(metrics.sluice_worker_restarts_total[i])];
  }));
}

function showLosses() {
  const rows = [];
  for (const [name, words, usual = []] of LOSSES) {
    const family = samples.latest.metrics[name] ?? 0;
    const isByLabel = typeof family === 'object' && !Array.isArray(family);
    if (!isByLabel) rows.push([words, sum(family)]);
    else {
      for (const [label, count] of Object.entries(family)) {
        if (!usual.includes(label)) rows.push([`${words}: ${label.replaceAll('_', ' ')}`, count]);
      }
    }
  }
  const seen = rows.filter(([, count]) => count > 0);
  fillTable('losses', seen.map(([words, count]) => [words, formatCount(count)]));
  $('#losses').hidden = seen.length === 0;
  $('#nothing-lost').hidden = seen.length > 0;
}

function showParts() {
  fillTable('parts', Object.entries(samples.latest.health ?? {}).map(([name, part]) => [
    name, part.state, part.since_ms ? clockTime(part.since_ms) : '–', part.why ?? '']));
}

let state = 'connecting';

function showState(name, text) {
  if (state !== name) announce(text);
  state = name;
  $('#state').dataset.state = name;
  $('#stale').hidden = name !== 'refused';
  if (name === 'refused' && samples.latest) {
    put('stale', `No answer since ${clockTime(samples.latest.now_ms)}: the numbers are of that time.`);
  } else if (name === 'refused') {
    put('stale', 'No answer yet.');
  }
  put('state-text', text);
}

function show() {
  showTiles();
  showKinds();
  showTimes();
  showSlow();
  showWorkers();
  showLosses();
  showParts();
  const { isWell, text } = health(samples.latest);
  showState(isWell ? 'live' : 'waiting', text);
}

// --- asking ---

function showTokenError(text) {
  $('#error-token').textContent = text;
  $('#error-token').hidden = !text;
}

async function ask() {
  const token = getToken();
  const look = (headers) => fetch('/status.json', { headers, cache: 'no-store', credentials: 'omit' });
  let response = await look(token ? { Authorization: `Bearer ${token}` } : {});
  if (response.status === 401) {
    showTokenError('The token is not valid.');
    response = await look({});
  } else if (token && response.ok) {
    showTokenError('');
  }
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return response.json();
}

let lastSecond = 0;

async function turn() {
  try {
    samples.push(await ask());
    show();
    const second = Math.floor(Date.now() / 1000);
    if (second > lastSecond) {
      chartIn.push(second, [eventsIn(1)]);
      chartOut.push(second, [samples.rate('sluice_deliveries_total', 1)]);
      lastSecond = second;
    }
  } catch {
    showState('refused', 'No answer');
  }
  setTimeout(turn, EVERY_MS);
}

$('#ask-token').addEventListener('submit', (event) => {
  event.preventDefault();
  setToken($('#token').value);
});

turn();
