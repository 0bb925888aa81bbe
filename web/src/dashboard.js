// dashboard.js - the page at /: a stream, its posts, where they come from and how many.

import { Ask } from './ask.js';
import { Chart } from './chart.js';
import { curlCommand, exportCommand, tailCommand } from './command.js';
import { $, $$, announce, copyText, make } from './dom.js';
import { Feed } from './feed.js';
import { WorldMap, parseBoxes, printBox } from './map.js';
import { Stream } from './stream.js';
import { startTheme } from './theme.js';
import { describeToken, getToken, isExpired, permittedStreams, setToken, takeTokenFromAddress } from './token.js';

const TYPES = ['post', 'delete', 'follow', 'unfollow'];
const BEHIND_MS = 3000; // an older event is history that is being caught up with

startTheme();

const feed = new Feed((isEmpty) => {
  $('#nothing').hidden = !isEmpty;
  $('#feed').hidden = isEmpty;
});
const chart = new Chart($('#chart'), [
  { label: 'posts', colour: 'accent', fill: true },
  { label: 'deletions', colour: 'bad' },
  { label: 'follows', colour: 'good' },
  { label: 'unfollows', colour: 'warn' },
], { height: 120 });
const ask = new Ask(() => { showRequest(); restart(); });
const map = new WorldMap($('#map'), (box) => {
  ask.stream = 'filter';
  ask.setValue('locations', [...parseBoxes(ask.value('locations')).map(printBox), printBox(box)].join(', '));
  ask.changed();
  announce(`Box added: ${printBox(box)}`);
});
const stream = new Stream({ onEvent: takeEvent, onNotice: takeNotice, onState: showState });

let mode = 'idle'; // or running, paused
let heard = '';    // what was asked for last, in words
let counts = emptyCounts();

function emptyCounts() {
  return { delivered: 0, second: TYPES.map(() => 0), perSecond: null, lagMs: null };
}

// --- events ---

// What is past is shown, but counts for no rate and no lag.
function takeEvent(type, event, isPast) {
  const kind = TYPES.indexOf(type);
  if (kind < 0) return;
  const at = Date.parse(event.at);
  if (!isPast) {
    counts.delivered++;
    counts.second[kind]++;
    if (!Number.isNaN(at)) counts.lagMs = Math.max(0, Date.now() - at);
  }
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
    setMode('idle');
    stream.stop();
    showState('unasked');
    return;
  }
  if (ask.describe() !== heard) feed.turn(ask.describe());
  heard = ask.describe();
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
let nextTryAt = 0;

const sentence = (text) => text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');
const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };

// What the page has to say about the end of a stream, and the field it is about.
function faultOf({ error, code, reason }) {
  const isToken = error?.status === 401 || error?.status === 403 || code?.startsWith('token_');
  if (isToken && isExpired(getToken())) return ['token', 'This token has expired. With a new one the stream goes on where it stopped.'];
  return [isToken ? 'token' : error?.param, sentence(error?.message ?? reason)];
}

function showState(name, details = {}) {
  state = name;
  put($('#reconnects'), String(stream.reconnects));
  let fault = '';
  if (name === 'refused' || name === 'ended') {
    setMode('idle');
    const [field, text] = faultOf(details);
    fault = text;
    fold(false);
    if (!ask.showError(field, text)) ask.showError('form', text);
  } else if (name === 'waiting') {
    nextTryAt = Date.now() + details.ms;
    const why = details.error?.status ? details.error.message : details.disconnect?.reason;
    fault = sentence(why ?? 'The server does not answer');
    put($('#notice-text'), fault + (stream.cursor ? ' The stream will go on where it stopped.' : ''));
  }
  // From one try to the next the notice stays: what comes and goes cannot be read or clicked.
  if (name !== 'connecting') $('#notice').hidden = name !== 'waiting';
  renderState();
  renderNothing();
  if (name === 'waiting') announceWaiting(fault);
  else if (name !== 'connecting') announce([$('#state-text').textContent, fault].filter(Boolean).join(': '));
}

// Once for each time that a server is away, not for each try.
let isAwayTold = false;

function announceWaiting(fault) {
  if (!isAwayTold) announce(fault);
  isAwayTold = true;
}

function renderState() {
  const isBehind = state === 'live' && counts.lagMs > BEHIND_MS && counts.perSecond > 0;
  const text = {
    idle: 'Not connected',
    unasked: 'Nothing asked for',
    connecting: 'Connecting',
    live: isBehind ? 'Catching up' : 'Live',
    waiting: `Next try in ${Math.max(1, Math.ceil((nextTryAt - Date.now()) / 1000))} s`,
    refused: 'Refused',
    ended: 'Ended',
    paused: 'Paused',
  }[state];
  if (state === 'live') isAwayTold = false;
  $('#state').dataset.state = isBehind ? 'behind' : state;
  put($('#state-text'), text);
}

// What stands where there are no posts yet.
function renderNothing() {
  const [title, text, command = ''] = getToken() ? {
    unasked: ['What shall it be?', 'Type words to track, follow somebody, write a rule, or draw a box on the map.'],
    connecting: ['Connecting', 'Posts appear here as they happen.'],
    live: ['Listening', 'Posts appear here as they happen. One of your own:', "sluice post --user NAME 'Good morning'"],
    waiting: ['Nobody there', 'Posts appear here once the server answers.'],
    refused: ['Refused', 'What is wrong stands beside its field.'],
    ended: ['Ended', 'Why stands beside the field.'],
    paused: ['Paused', '“Resume” brings what has come meanwhile.'],
    idle: ['Ready', '“Listen” begins.'],
  }[state] : ['A token first', 'scripts/run prints an address that brings one. With a server of your own, make one and paste it:',
    "sluice token --secret-file FILE --sub 1 --scope 'stream:filter stream:firehose'"];
  put($('#nothing-title'), title);
  put($('#nothing-text'), text);
  put($('#nothing-command'), command);
  $('#nothing-command').hidden = command === '';
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
  const types = ask.types();
  const values = counts.second.map((count, i) => (isOn && types.includes(TYPES[i]) ? Math.round(count / slept) : null));
  for (let i = slept - 1; i >= 0; i--) chart.push(second - 1 - i, values);
  counts.perSecond = isOn ? values.reduce((all, count) => all + (count ?? 0), 0) : null;
  counts.second.fill(0);
  lastSecond = second;
  TYPES.forEach((type, i) => { $(`#legend-${type}`).textContent = values[i]?.toLocaleString() ?? '–'; });
}

function showRequest() {
  const request = ask.request() ?? { path: `/v1/stream/${ask.stream}`, parameters: new URLSearchParams() };
  $('#curl').textContent = curlCommand(location.origin, request);
  $('#tail').textContent = tailCommand(location.origin, request);
  for (const entry of $$('.legend [data-type]')) entry.hidden = !ask.types().includes(entry.dataset.type);
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
      ($('#boxes button') ?? $('#draw-box')).focus(); // the one that had it is gone
    });
    return make('li', {}, button);
  }));
}

function showToken() {
  $('#about-token').textContent = describeToken(getToken());
  $('#token').value = getToken();
  $('#copy-token').disabled = !getToken();
}

// On a phone, see dashboard.css.
function fold(isFolded) {
  $('.asking').classList.toggle('is-folded', isFolded);
  $('#fold').setAttribute('aria-expanded', String(!isFolded));
  $('#fold').textContent = isFolded ? 'Settings and token' : 'Fewer settings';
}

// --- the page ---

$('#ask').addEventListener('submit', (event) => {
  event.preventDefault();
  if (document.activeElement?.id === 'go' || mode !== 'running') press();
});
$('#token').addEventListener('change', ({ target }) => {
  setToken(target.value);
  showToken();
  if (getToken()) {
    start(stream.cursor);
    return;
  }
  stream.stop();
  setMode('idle');
  showState('idle');
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

$('#views').addEventListener('change', ({ target }) => { $('main').dataset.view = target.value; });
$('#try-now').addEventListener('click', () => stream.hurry());
addEventListener('online', () => stream.hurry());

$('.skip').addEventListener('click', (event) => { // the fragment is taken, see ask.js
  event.preventDefault();
  $($('#feed').hidden ? '#nothing' : '#feed').focus();
});

// False: the address says nothing.
function takeAddress() {
  const isTokenThere = takeTokenFromAddress();
  const isStreamThere = ask.recall();
  return isTokenThere || isStreamThere;
}

function begin() {
  showToken();
  showRequest();
  renderState();
  renderNothing();
  fold(getToken() !== '' && ask.request() !== null);
  if (getToken()) start(stream.cursor);
  else $('#token').focus();
}

takeAddress();
if (!location.hash) ask.stream = permittedStreams(getToken())[0] ?? 'firehose';
begin();
addEventListener('hashchange', () => { if (takeAddress()) begin(); }); // pasted into this tab
setInterval(() => { tick(); renderCounts(); }, 250);
