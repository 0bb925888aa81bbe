// status.js - the page at /status: the server's verdict, the path of an event, the last 15 minutes,
// what happened, and which streams are behind. It asks once a second, and each answer has what is new.

import { $, announce, make, put } from './dom.js';
import { formatBound, formatBytes, formatCount, formatRatio, formatSeconds } from './format.js';
import { workerState } from './health.js';
import { clockTime } from './ids.js';
import { Past } from './past.js';
import { Plots, Sparkline } from './plots.js';
import { Samples, sum } from './samples.js';
import { startTheme } from './theme.js';
import { getToken, hasScope, setToken, takeTokenFromAddress } from './token.js';

const EVERY_MS = 1000;
const HIDDEN_EVERY_MS = 10_000; // for the title and icon
const SHORT_S = 5; // for rates
const LONG_S = 15; // for values that are measured less often: CPU, Redis
const MINUTE_S = 60;
const INCIDENTS_SHOWN = 8;
const LATE_KEPT = 60; // lags that are kept for a slow stream

const STREAMS = ['filter', 'sample', 'firehose', 'home', 'counts', 'trends', 'many'];
const TRANSPORTS = ['websocket', 'ndjson', 'delimited', 'sse'];
const TIMES = {
  'sluice_match_seconds': 'Match an event',
  'sluice_delivery_seconds': 'Redis to socket',
  'sluice_redis_round_trip_seconds': 'Redis round trip',
};

// Problems: the metric, its name, and labels that are normal.
const LOSSES = [
  ['sluice_disconnects_total', 'Streams ended', ['draining', 'token_expired', 'complete']],
  ['sluice_broken_connections_total', 'Connections broken'],
  ['sluice_streams_refused_total', 'Streams refused, limit'],
  ['sluice_tokens_refused_total', 'Tokens refused'],
  ['sluice_handshakes_dropped_total', 'Handshakes dropped'],
  ['sluice_accept_exhausted_total', 'Connections closed: out of file descriptors'],
  ['sluice_events_refused_total', 'Events refused'],
  ['sluice_event_gaps_total', 'Gaps in the events'],
  ['sluice_gaps_told_total', 'Gaps reported to clients'],
  ['sluice_redis_subscriptions_lost_total', 'Redis subscriptions lost'],
  ['sluice_redis_master_moves_total', 'Failovers to another Redis (Sentinel)'],
  ['sluice_log_read_failures_total', 'Failed reads of the log'],
  ['sluice_event_bytes_exceeded_total', 'All queues dropped: over max-shared-bytes'],
  ['sluice_tasks_dead', 'Dead letters'],
  ['sluice_worker_restarts_total', 'Workers restarted'],
  ['sluice_worker_hangs_total', 'Workers killed: not responding'],
  ['sluice_intake_restarts_total', 'Intake process restarted'],
  ['sluice_task_runner_restarts_total', 'Task process restarted'],
  ['sluice_key_fetcher_restarts_total', 'Key fetcher restarted'],
  ['sluice_private_redis_restarts_total', 'Private Redis restarted'],
];

const LEVELS = { ok: 'All is well', warning: 'Warning', critical: 'Critical', note: 'Note', unknown: 'Unknown' };
const SIGNS = {
  ok: 'M2.5 8.5 6.5 12.5 13.5 4',
  note: 'M8 7v5M8 4v.01',
  warning: 'M8 2 14.5 14h-13ZM8 6.5v3.5M8 12v.01',
  critical: 'M5.5 1.5h5l4 4v5l-4 4h-5l-4-4v-5ZM6 6l4 4M10 6l-4 4',
  unknown: 'M6 6c0-3 4-3 4-.5C10 7.5 8 7.5 8 9.5M8 12v.01',
};

// The path of an event: the title of each step, the parts of the verdict about it, and the member of a sample that it draws.
const STEPS = {
  redis: { title: 'Redis', codes: ['redis_silent', 'redis_slow', 'reads', 'writes', 'archive', 'tasks'], field: 'redis_us' },
  in: { title: 'In', codes: ['streams', 'shards', 'intake', 'gaps'], field: 'events_in' },
  match: { title: 'Match', codes: ['cpu', 'workers'], field: 'match_us' },
  owed: { title: 'Owed', codes: ['owed', 'memory'], field: 'owed_events' },
  out: { title: 'Out', codes: [], field: 'events_out' },
  streams: { title: 'Streams', codes: ['behind', 'tokens', 'refusals'], field: 'streams' },
};

// Where the page shows more about a part of the verdict; all others are in the table of parts.
const PLACES = {
  behind: { title: 'the streams that are behind', codes: ['behind', 'owed'] },
  'workers-fold': { title: 'the workers', codes: ['workers', 'cpu', 'memory'] },
  'times-place': { title: 'the latency', codes: ['redis_silent', 'redis_slow'] },
  'losses-place': { title: 'the problems', codes: ['intake', 'gaps', 'tokens', 'refusals'] },
  'parts-place': { title: 'the parts', codes: [] },
};

const perSecond = (value) => (value === null ? '–' : `${formatCount(value)}/s`);
const percent = (value) => (value === null ? '–' : `${Math.round(value * 100)} %`);
const ofMicroseconds = (value) => value / 1e6;
const ofThousandths = (value) => value / 1000;

const PLOTS = [
  { title: 'In', lines: [{ label: 'in', field: 'events_in' }], format: perSecond },
  { title: 'Out', lines: [{ label: 'out', field: 'events_out' }], format: perSecond },
  { title: 'Lag', lines: [{ label: 'worst', field: 'lag_ms', of: ofThousandths }, { label: 'p99', field: 'delivery_p99_us', of: ofMicroseconds }],
    format: formatSeconds, least: 0.1 },
  { title: 'Owed', lines: [{ label: 'owed', field: 'owed_events' }], format: formatCount, least: 10 },
  { title: 'Memory', lines: [{ label: 'memory', field: 'memory_bytes' }], format: formatBytes },
  { title: 'CPU', lines: [{ label: 'all', field: 'cpu_milli', of: ofThousandths }, { label: 'busiest', field: 'busiest_cpu_milli', of: ofThousandths }],
    format: percent, least: 1 },
];

startTheme();
takeTokenFromAddress();

const samples = new Samples();
const past = new Past();
const plots = new Plots($('#plots'), $('#moment'), PLOTS, clockTime);

const putIn = (id, text) => put($(`#${id}`), text);

function level(element, name) {
  if (element.dataset.level !== name) element.dataset.level = name;
}

function sign(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('class', 'sign');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', LEVELS[name]);
  path.setAttribute('d', SIGNS[name]);
  svg.append(path);
  return svg;
}

// Rows are reused and only their text changes, so that screen readers and selections are not disturbed.
function fillTable(id, rows) {
  const body = $(`#${id} tbody`);
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  rows.forEach((cells, i) => {
    const row = body.rows[i] ?? body.appendChild(make('tr', {}, make('th', { scope: 'row' }),
      ...cells.slice(1).map(() => make('td'))));
    cells.forEach((text, k) => {
      if (typeof text !== 'string') text(row.cells[k]);
      else put(row.cells[k], text);
      row.cells[k].classList.toggle('zero', k > 0 && text === '0');
    });
  });
}

// --- the verdict ---

let told = '';

function link(element, code) {
  const [id, { title }] = Object.entries(PLACES).find(([, { codes }]) => codes.includes(code)) ?? Object.entries(PLACES).at(-1);
  if (element.hash === `#${id}`) return;
  element.href = `#${id}`;
  element.setAttribute('aria-label', `Show ${title}`);
}

function showVerdict(verdict) {
  const { level: name, text, parts, since } = verdict;
  const others = parts.slice(1);
  const ago = (Date.now() - Date.parse(since)) / 1000;
  level($('#verdict'), name);
  const path = $('#verdict-sign');
  if (path.getAttribute('d') !== SIGNS[name]) path.setAttribute('d', SIGNS[name]);
  putIn('verdict-level', LEVELS[name]);
  putIn('verdict-text', text.replace(/^All is well: (.)/, (_, first) => first.toUpperCase()));
  $('#verdict-show').hidden = parts.length === 0;
  if (parts.length > 0) link($('#verdict-show'), parts[0].code);
  const list = $('#verdict-parts');
  while (list.children.length > others.length) list.lastElementChild.remove();
  others.forEach((part, i) => {
    const item = list.children[i] ?? list.appendChild(make('li', {}, make('span.sign-place'), make('span'), make('a.show', {}, 'Show')));
    if (item.dataset.level !== part.level) {
      level(item, part.level);
      item.firstElementChild.replaceChildren(sign(part.level));
    }
    put(item.children[1], part.text);
    link(item.lastElementChild, part.code);
  });
  putIn('verdict-since', `${parts.length === 1 ? 'Everything else is well. ' : ''}Since ${clockTime(Date.parse(since))}${
    ago >= 1 ? ` (${formatSeconds(ago)})` : ''}.`);
  const mark = { warning: '(!) ', critical: '(!!) ' }[name];
  const title = mark ? `${mark}${text} – Sluice` : 'All well – Sluice, status';
  if (document.title !== title) document.title = title;
  const icon = $('#icon');
  const href = icon.dataset[name] ?? icon.dataset.ok;
  if (icon.getAttribute('href') !== href) icon.setAttribute('href', href);
  showState('live', name, LEVELS[name]);
  const saying = `${name} ${parts.map((part) => part.code).join(' ')}`;
  if (told !== saying) announce(`${LEVELS[name]}: ${text}`);
  told = saying;
}

function showState(name, levelName, text) {
  if ($('#state').dataset.state !== name) $('#state').dataset.state = name;
  level($('#state'), levelName);
  putIn('state-text', text);
}

// --- the path of an event ---

// Each subscribed worker receives and counts every event.
const hearing = () => Math.max(1, samples.value('sluice_worker_subscribed'));

function eventsIn() {
  const rate = samples.rate('sluice_events_received_total', SHORT_S);
  return rate === null ? null : rate / hearing();
}

function matchSeconds() {
  const now = samples.latest.histograms['sluice_match_seconds'];
  const then = samples.before(SHORT_S).histograms['sluice_match_seconds'];
  const times = sum(now.buckets) - sum(then.buckets);
  return times > 0 ? (now.sum - then.sum) / times : null;
}

const steps = Object.fromEntries(Object.entries(STEPS).map(([name, { title, field, codes }]) => {
  const step = { codes, field, sign: make('span.sign-place'), value: make('b', { id: `pipe-${name}` }), note: make('small') };
  const item = make('li', {}, make('span.title', {}, title, ' ', step.sign), step.value, step.note);
  step.item = item;
  step.line = new Sparkline(item);
  $('#pipe').append(item);
  return [name, step];
}));

function showPipe({ verdict }) {
  const value = (name) => samples.value(name);
  const matches = samples.ratio('sluice_matches_total', 'sluice_events_received_total', SHORT_S);
  const streams = value('sluice_streams');
  const late = value('sluice_streams_late');
  const show = (name, text, note) => {
    const step = steps[name];
    const worst = verdict.parts.find(({ code }) => step.codes.includes(code))?.level ?? 'ok';
    if (step.item.dataset.level !== worst) {
      level(step.item, worst);
      step.sign.replaceChildren(...(worst === 'ok' ? [] : [sign(worst)]));
    }
    put(step.value, text);
    put(step.note, note);
  };
  show('redis', formatBound(samples.quantile('sluice_redis_round_trip_seconds', 0.5, LONG_S)),
    `p99 ${formatBound(samples.quantile('sluice_redis_round_trip_seconds', 0.99, LONG_S))}`);
  show('in', perSecond(eventsIn()), 'events');
  show('match', formatSeconds(matchSeconds()), `${formatRatio(matches === null ? null : matches * hearing())} per event`);
  show('owed', formatCount(value('sluice_owed_events')), `${formatCount(value('sluice_streams_catching_up'))} catching up`);
  show('out', perSecond(samples.rate('sluice_deliveries_total', SHORT_S)), `${formatBytes(samples.rate('sluice_delivered_bytes_total', SHORT_S))}/s`);
  show('streams', formatCount(streams), late > 0 ? `${formatCount(late)} behind` : 'none behind');
}

// --- the past ---

function showPast() {
  const slots = past.slots();
  for (const step of Object.values(steps)) step.line.show(slots, step.field);
  plots.show(slots, past.incidents);
  if ($('#past-table-fold').open) showPastTable(slots);
}

function showPastTable(slots = past.slots()) {
  const number = (slot, line) => plots.number(line, slot);
  fillTable('past-table', slots.filter((_, i) => (slots.length - 1 - i) % 12 === 0).reverse().map((slot) => [
    clockTime(slot.time), ...PLOTS.map(({ lines, format }) => format(number(slot, lines[0])))]));
}

let areAllShown = false;

function lasted({ from, to, level: name }) {
  if (to === null) return `ongoing for ${formatSeconds((Date.now() - from) / 1000)}`;
  return to > from || name !== 'note' ? `lasted ${formatSeconds((to - from) / 1000)}` : '';
}

function showIncidents() {
  const shown = areAllShown ? past.incidents : past.incidents.slice(0, INCIDENTS_SHOWN);
  const list = $('#incidents');
  while (list.children.length > shown.length) list.lastElementChild.remove();
  shown.forEach((incident, i) => {
    const item = list.children[i] ?? list.appendChild(make('li', {}, make('time'), make('span.sign-place'),
      make('p', {}, make('span.what'), make('small'))));
    const [time, place, text] = item.children;
    if (item.dataset.level !== incident.level) {
      level(item, incident.level);
      place.replaceChildren(sign(incident.level));
    }
    time.dateTime = incident.begin;
    put(time, clockTime(incident.from));
    put(text.firstElementChild, incident.text);
    put(text.lastElementChild, [lasted(incident), incident.consequence].filter(Boolean).join('; '));
  });
  $('#nothing-happened').hidden = past.incidents.length > 0;
  const more = $('#all-incidents');
  more.hidden = past.incidents.length <= INCIDENTS_SHOWN;
  put(more, areAllShown ? `Show the last ${INCIDENTS_SHOWN}` : `Show all ${past.incidents.length}`);
}

/* --- slow streams --- */

const lags = new Map(); // stream -> its last lags
const logins = new Map(); // subject -> login; null: requested

const keyOf = ({ worker, subject, stream, transport, connected_ms: connected }, now) => (
  [worker, subject, stream, transport, Math.round((now - connected) / 5000)].join(' '));

// Without the scope for this, the subject's id is shown.
async function findLogin(subject) {
  if (logins.has(subject) || !/^\d+$/.test(subject) || !hasScope(getToken(), 'read')) return;
  logins.set(subject, null);
  try {
    const response = await fetch(`/v1/users/${subject}`, { headers: { Authorization: `Bearer ${getToken()}` }, credentials: 'omit' });
    if (response.ok) logins.set(subject, (await response.json()).login ?? null);
  } catch {
    // the id is shown
  }
}

function who({ subject }) {
  if (subject === null) return 'not shown';
  findLogin(subject);
  const login = logins.get(subject);
  return login ? `@${login} (${subject})` : subject;
}

// The stream and its filter; the complete filter under the pointer.
function streamText({ stream, transport, filter }) {
  return (cell) => {
    if (!cell.firstChild) cell.append(make('span'), make('bdi.asks'));
    put(cell.firstChild, `${stream}, ${transport}`);
    put(cell.lastChild, filter ?? '');
    cell.lastChild.title = filter ?? '';
  };
}

function lagLine(values) {
  return (cell) => {
    cell.line ??= new Sparkline(cell);
    cell.line.show(values.map((lag) => ({ lag })), 'lag');
  };
}

function showBehind({ slowest, subjects, now_ms: now }) {
  const late = slowest.filter((one) => one.late);
  const seen = new Set();
  const rows = late.map((slow) => {
    const key = keyOf(slow, now);
    const values = lags.get(key) ?? new Array(LATE_KEPT).fill(null);
    values.push(slow.lag_ms);
    lags.set(key, values.slice(-LATE_KEPT));
    seen.add(key);
    return [who(slow), streamText(slow),
      formatSeconds(slow.lag_ms / 1000) + (slow.catching_up ? ', from the log' : ''), lagLine(lags.get(key)),
      `${formatBytes(slow.reads_bytes_per_second)}/s / ${slow.needs_bytes_per_second === null ? '–' : `${formatBytes(slow.needs_bytes_per_second)}/s`}`,
      `${slow.catching_up ? '≈ ' : ''}${formatCount(slow.owed_events)}`, clockTime(now - slow.late_ms), String(slow.worker)];
  });
  for (const key of lags.keys()) if (!seen.has(key)) lags.delete(key);
  const count = samples.value('sluice_streams_late') ?? 0;
  putIn('behind-title', count > 0 ? `Behind (${formatCount(count)})` : 'Behind');
  putIn('behind-note', count > late.length && late.length > 0 ? `the worst ${late.length}` : '');
  fillTable('slow', rows);
  $('#slow-scroll').hidden = rows.length === 0;
  $('#nobody-slow').hidden = rows.length > 0;
  $('#ask-token').hidden = subjects;
}

// --- details ---

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

function showWorkers() {
  const { metrics } = samples.latest;
  const before = samples.before(LONG_S);
  const passed = (samples.latest.now_ms - before.now_ms) / 1000;
  putIn('workers-title', `Workers: ${sum(metrics.sluice_worker_up)} of ${metrics.sluice_worker_up.length} up`);
  if (!$('#workers-fold').open) return;
  fillTable('workers', metrics.sluice_worker_up.map((_, i) => {
    const cpu = metrics.sluice_worker_cpu_seconds_total[i] - before.metrics.sluice_worker_cpu_seconds_total[i];
    return [String(i), workerState(metrics, i),
      passed > 0 ? percent(Math.max(0, cpu / passed)) : '–',
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
  fillTable('parts', Object.entries(samples.latest.health).map(([name, part]) => [
    name, part.state, part.since_ms ? clockTime(part.since_ms) : '–', part.why ?? '']));
}

function showDetails() {
  if (!$('#details').open) return;
  showParts();
  showKinds();
  showTimes();
  showLosses();
  putIn('about-server', `sluiced ${samples.latest.version}, up ${
    formatSeconds(samples.latest.now_ms / 1000 - samples.value('sluice_start_time_seconds'))}.`);
}

/* --- requests --- */

function showTokenError(text) {
  $('#error-token').textContent = text;
  $('#error-token').hidden = !text;
}

async function ask() {
  const token = getToken();
  const since = past.since;
  const address = since === null ? '/status.json' : `/status.json?since=${since}`;
  const look = (headers) => fetch(address, { headers, cache: 'no-store', credentials: 'omit' });
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

function showAbsence() {
  const since = samples.latest ? `No answer since ${clockTime(samples.latest.now_ms)}. The numbers below are from then.` : 'No answer yet.';
  showState('refused', 'unknown', 'No answer');
  putIn('stale', since);
  $('#stale').hidden = false;
  document.body.classList.add('is-stale');
  if (told !== 'away') {
    announce(since);
    level($('#verdict'), 'unknown');
    $('#verdict-sign').setAttribute('d', SIGNS.unknown);
    putIn('verdict-level', LEVELS.unknown);
    document.title = '(?) No answer – Sluice';
    $('#icon').setAttribute('href', $('#icon').dataset.critical);
  }
  told = 'away';
}

function show(answer, isNew) {
  $('#stale').hidden = true;
  document.body.classList.remove('is-stale');
  showVerdict(answer.verdict);
  if (document.hidden) return;
  showPipe(answer);
  if (isNew || past.incidents.some((one) => one.to === null)) showIncidents();
  if (isNew) showPast();
  showBehind(answer);
  showWorkers();
  showDetails();
}

let isUnseen = false; // something has changed while the page was hidden
let timer;

async function turn() {
  clearTimeout(timer);
  try {
    const answer = await ask();
    samples.push(answer);
    isUnseen = past.take(answer) || isUnseen;
    show(answer, isUnseen);
    isUnseen = isUnseen && document.hidden;
  } catch (error) {
    if (!(error instanceof TypeError) && !/the server answered/.test(error.message)) throw error;
    showAbsence();
  } finally {
    timer = setTimeout(turn, document.hidden ? HIDDEN_EVERY_MS : EVERY_MS);
  }
}

$('#ask-token').addEventListener('submit', (event) => {
  event.preventDefault();
  setToken($('#token').value);
});
$('#all-incidents').addEventListener('click', () => {
  areAllShown = !areAllShown;
  showIncidents();
});
$('#verdict').addEventListener('click', ({ target }) => {
  if (target.matches('.show')) $(target.hash).closest('details')?.setAttribute('open', '');
});
for (const fold of document.querySelectorAll('details')) {
  fold.addEventListener('toggle', () => {
    if (!samples.latest) return;
    showWorkers();
    showDetails();
    if (fold.open && fold.id === 'past-table-fold') showPastTable();
  });
}
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) turn();
});

turn();
