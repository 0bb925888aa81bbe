// dashboard.js - the page at /: a stream, its posts, where they come from and how many.

import { Ask } from './ask.js';
import { Chart } from './chart.js';
import { curlCommand, exportCommand, tailCommand } from './command.js';
import { $, $$, announce, copyText, make } from './dom.js';
import { Feed } from './feed.js';
import { WorldMap, parseBoxes, printBox } from './map.js';
import { Stream } from './stream.js';
import { startTheme } from './theme.js';
import { describeToken, getToken, permittedStreams, setToken, takeTokenFromAddress } from './token.js';

const TYPES = ['post', 'delete', 'follow', 'unfollow'];
const BEHIND_MS = 3000; // an older event is history that is being caught up with

startTheme();

const feed = new Feed();
const chart = new Chart($('#chart'), [
  { label: 'posts', colour: 'accent', fill: true },
  { label: 'deletions', colour: 'bad' },
  { label: 'follows', colour: 'good' },
  { label: 'unfollows', colour: 'warn' },
]);
const ask = new Ask(() => { showRequest(); restart(); });
const map = new WorldMap($('#map'), (box) => {
  ask.stream = 'filter';
  ask.setValue('locations', [...parseBoxes(ask.value('locations')).map(printBox), printBox(box)].join(', '));
  ask.changed();
  announce(`Box added: ${printBox(box)}`);
});
const stream = new Stream({ onEvent: takeEvent, onNotice: takeNotice, onState: showState });

let mode = 'idle'; // or running, paused
let counts = emptyCounts();

function emptyCounts() {
  return { delivered: 0, second: TYPES.map(() => 0), perSecond: null, lagMs: null };
}

// --- events ---

function takeEvent(type, event) {
  const kind = TYPES.indexOf(type);
  if (kind < 0) return;
  counts.delivered++;
  counts.second[kind]++;
  const at = Date.parse(event.at);
  if (!Number.isNaN(at)) counts.lagMs = Math.max(0, Date.now() - at);
  if (type === 'post') showOnMap(event.post);
  else if (type === 'delete') map.removePoint(event.post.id);
  feed.add(event);
}

function showOnMap({ id, geo, place }) {
  if (geo && Number.isFinite(geo.lon) && Number.isFinite(geo.lat)) map.addPoint(id, geo.lon, geo.lat);
  else if (place?.bbox?.length === 4) {
    const [west, south, east, north] = place.bbox;
    const middle = west <= east ? (west + east) / 2 : ((west + east + 540) % 360) - 180;
    map.addPoint(id, middle, (south + north) / 2);
  }
}

function takeNotice(kind, message) {
  if (kind === 'gap') feed.note(message);
}

// --- the stream ---

function start(cursor) {
  const request = ask.request();
  ask.clearErrors();
  if (!getToken()) {
    ask.showError('token', 'A token first.');
    $('#token').focus();
    return;
  }
  if (!request) {
    mode = 'idle';
    stream.stop();
    showState('unasked');
    return;
  }
  setMode('running');
  stream.start(request, getToken(), cursor);
}

// Other words, other boxes: what came since the last event is judged by them, too.
function restart() {
  if (mode === 'running' || (mode === 'idle' && getToken())) start(stream.cursor);
}

function press() {
  if (mode === 'running') {
    stream.stop();
    setMode('paused');
    showState('paused');
  } else {
    start(stream.cursor);
  }
}

function setMode(name) {
  mode = name;
  $('#go').textContent = { idle: 'Listen', running: 'Pause', paused: 'Resume' }[mode];
  $('#go').classList.toggle('primary', mode !== 'running');
}

// --- what is seen of it ---

let state = 'idle';

function showState(name, details = {}) {
  state = name;
  $('#reconnects').textContent = stream?.reconnects ?? 0;
  if (name === 'refused' || name === 'ended') {
    setMode('idle');
    const { error } = details;
    const text = error?.message ?? details.reason;
    const field = error?.status === 401 || error?.status === 403 ? 'token' : error?.param;
    fold(false);
    if (!ask.showError(field, text)) ask.showError('form', text);
  }
  renderState(details);
  if (name !== 'connecting') announce([$('#state-text').textContent, details.error?.message].filter(Boolean).join(': '));
}

function renderState(details = {}) {
  const isBehind = state === 'live' && counts.lagMs > BEHIND_MS && counts.perSecond > 0;
  const text = {
    idle: 'Not connected',
    unasked: 'Nothing asked for',
    connecting: 'Connecting',
    live: isBehind ? 'Catching up' : 'Live',
    waiting: `Back in ${Math.max(1, Math.round(details.seconds ?? 1))} s`,
    refused: 'Refused',
    ended: 'Ended',
    paused: 'Paused',
  }[state];
  const pill = $('#state');
  pill.dataset.state = isBehind ? 'behind' : state;
  if (state !== 'waiting' || details.seconds) $('#state-text').textContent = text;
}

function formatLag(ms) {
  if (ms === null) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  return `${Math.round(ms / 3_600_000)} h`;
}

function renderCounts() {
  $('#delivered').textContent = counts.delivered.toLocaleString();
  $('#rate').textContent = counts.perSecond === null ? '–' : counts.perSecond.toLocaleString();
  $('#lag').textContent = formatLag(counts.lagMs);
  renderState();
}

let lastSecond = Math.floor(Date.now() / 1000);

function tick() {
  const second = Math.floor(Date.now() / 1000);
  if (second === lastSecond) return;
  // A tab in the background is woken less often: the seconds it slept share what came.
  const slept = Math.min(120, second - lastSecond);
  const isOn = mode === 'running';
  const values = counts.second.map((count) => (isOn ? Math.round(count / slept) : null));
  for (let i = slept - 1; i >= 0; i--) chart.push(second - 1 - i, values);
  counts.perSecond = isOn ? values.reduce((sum, count) => sum + count, 0) : null;
  counts.second.fill(0);
  lastSecond = second;
  TYPES.forEach((type, i) => { $(`#legend-${type}`).textContent = values[i] ?? '–'; });
}

function showRequest() {
  const request = ask.request() ?? { path: `/v1/stream/${ask.stream}`, parameters: new URLSearchParams() };
  $('#curl').textContent = curlCommand(location.origin, request);
  $('#tail').textContent = tailCommand(location.origin, request);
  showBoxes();
}

function showBoxes() {
  const boxes = ask.stream === 'filter' ? parseBoxes(ask.value('locations')) : [];
  map.setBoxes(boxes);
  $('#boxes').replaceChildren(...boxes.map((box, i) => {
    const button = make('button.chip', { type: 'button', 'aria-label': `Remove the box ${printBox(box)}` },
      printBox(box), make('span', { 'aria-hidden': 'true' }, '×'));
    button.addEventListener('click', () => {
      ask.setValue('locations', boxes.filter((_, k) => k !== i).map(printBox).join(', '));
      ask.changed();
    });
    return make('li', {}, button);
  }));
}

function showToken() {
  $('#about-token').textContent = describeToken(getToken());
  $('#token').value = getToken();
}

// On a phone, see style.css.
function fold(isFolded) {
  $('.asking').classList.toggle('is-folded', isFolded);
  $('#fold').setAttribute('aria-expanded', String(!isFolded));
  $('#fold').textContent = isFolded ? 'Filter, token, commands' : 'Fewer settings';
}

// --- the page ---

$('#ask').addEventListener('submit', (event) => {
  event.preventDefault();
  if (document.activeElement?.id === 'go' || mode !== 'running') press();
});
$('#token').addEventListener('change', ({ target }) => {
  setToken(target.value);
  showToken();
  if (getToken()) start(stream.cursor);
});
$('#fold').addEventListener('click', () => fold(!$('.asking').classList.contains('is-folded')));
$('#clear').addEventListener('click', () => {
  feed.clear();
  map.clear();
  chart.clear();
  counts = emptyCounts();
  renderCounts();
  announce('Cleared');
});
for (const button of $$('[data-copy]')) {
  button.addEventListener('click', () => copyText(button, $(`#${button.dataset.copy}`).textContent));
}
$('#copy-token').addEventListener('click', ({ target }) => copyText(target, exportCommand(getToken())));

takeTokenFromAddress();
if (!ask.recall()) ask.stream = permittedStreams(getToken())[0] ?? 'firehose';
showToken();
showRequest();
renderCounts();
setInterval(() => { tick(); renderCounts(); }, 250);
fold(getToken() !== '' && ask.request() !== null);
if (getToken()) start(null);
else $('#token').focus();
