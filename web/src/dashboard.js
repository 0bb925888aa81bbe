// dashboard.js - the page at /: all panels show the same question and time range.
//
// The streams that must be open are computed from the view (wanted); what is displayed is computed from the received
// data (render). No other code opens streams or writes numbers.

import { Access } from './access.js';
import { Asking } from './asking.js';
import { Buckets, GROUP_BUCKETS, RANGES } from './buckets.js';
import { Chips, formatRate, sparkline } from './chips.js';
import { ServerClock } from './clock.js';
import { $, $$, announce, copyText, make, put } from './dom.js';
import { openDrawer } from './drawer.js';
import { estimate, obstacles } from './estimate.js';
import { sentence } from './fault.js';
import { Feed, postRow } from './feed.js';
import { formatCount, formatPercent, formatSeconds } from './format.js';
import { formerQuestion } from './former.js';
import { Gaps, describeGap, describeHole } from './gaps.js';
import { clockTime, timeOfId } from './ids.js';
import { Hint } from './hint.js';
import { listenToKeys } from './keys.js';
import { WorldMap } from './map.js';
import { countryName, languageName } from './names.js';
import { boxTerm, boxesOf, countsPath, leaveOut, narrow, postsPath, requestOf, titleOf } from './question.js';
import { Ranks } from './ranks.js';
import { Rising } from './rising.js';
import { PageStreams } from './streams.js';
import { describeState, isEnded, reasonOf } from './state.js';
import { startTheme } from './theme.js';
import { Timeline } from './timeline.js';
import { fillTable } from './timetable.js';
import { getToken, isExpired, permittedStreams, takeTokenFromAddress } from './token.js';
import { LETTERS, View } from './view.js';
import { why } from './why.js';

const WARNED_MS = 60_000; // the server repeats a warning within this time
const SOON_EXPIRED_MS = 60_000;
const HISTORY = 50;   // posts that are loaded when the page opens
const THEN = 60;      // posts that are loaded for a selected time
const OLD_MS = 3000;  // after this delay, a bucket is missing
const FRAME_MS = 900;   // at least this long between two renderings
const TOGETHER_MS = 300; // what arrives within this time is rendered together
const QUIET_MS = 700;   // after this time without a message, ages on the page are updated
const SOON_MS = 40;     // delay when the user waits for something new
const TITLE_MS = 10_000; // browsers redraw much for a new title
const IMPATIENT_MS = 1500;
const FAR_MS = 120_000;
const MINUTE_MS = 60_000;
const ENOUGH = 20;    // posts; a range with fewer of them is extended
const GROUPS = ['lang', 'country', 'cell'];
const GROUP_REFRESH_MS = 2000;

startTheme();

const view = new View();
const clock = new ServerClock();
const open = new Map(); // role -> { path, stop, buckets }
let isPaused = false;
let isGrowing = true;   // until the user chooses a range
const gaps = new Gaps();
const missing = new Map(); // language -> package with a font for it

const isIdle = () => isPaused || document.hidden;

/* --- requests --- */

function connect() {
  open.clear();
  streams.use(getToken());
  reconcile();
}

// The time range of the chart.
function shownTime() {
  if (view.brush?.window) return view.brush.window;
  const { ms, bucketMs } = RANGES[view.range];
  const to = Math.floor(clock.now() / bucketMs) * bucketMs;
  return { from: to - ms, to };
}

const iso = (ms) => new Date(ms).toISOString();
const between = ({ from, to }) => ({ since: iso(from), until: iso(to - 1) });

const isAllPermitted = () => permittedStreams(getToken()).includes('firehose');

// The roles of the streams that must be open, and their paths; the most important ones first, because without a WebSocket
// the last ones may have to wait.
function wanted() {
  const paths = new Map();
  if (!getToken() || view.question === null) return paths;
  const { bucket, bucketMs } = RANGES[view.range];
  const time = view.brush?.isPast ? between(view.brush.window)
    : { since: `-${view.range}`, ...(bucketMs > 1000 ? { refresh_ms: '1000' } : {}) };
  const add = (role, path) => { if (path) paths.set(role, path); };
  const slots = isIdle() ? view.slots.slice(0, 1) : view.slots;
  for (const slot of slots) add(LETTERS[slot], countsPath(view.questions[slot], { bucket, ...time }));
  if (isIdle()) return paths;
  const { question } = view;
  if (isAllPermitted() && !view.questions.includes('')) add('all', countsPath('', { bucket, ...time }));
  add('posts', postsPath(question, view.brush ? { ...between(view.brush), max: String(THEN) }
    : { last: String(HISTORY), max_rate: $('#pace').value }));
  const then = view.brush ? { bucket, ...between(view.brush) }
    : { bucket: GROUP_BUCKETS[view.range].bucket, since: `-${view.range}`, refresh_ms: String(GROUP_REFRESH_MS) };
  for (const by of GROUPS) add(by, countsPath(question, { by, ...(by === 'cell' ? { cell_degrees: String(map.cellDegrees) } : {}), ...then }));
  if (!view.brush) add('rising', risingPath());
  return paths;
}

function risingPath() {
  return countsPath(view.question ?? '', { window: $('#window').value, of: 'hashtags,words', bucket: '10s', limit: '10' }, '/v1/stream/trends');
}

function reconcile() {
  const paths = wanted();
  for (const [role, { path, stop }] of open) {
    if (paths.get(role) === path) continue;
    stop.abort();
    open.delete(role);
  }
  if (!paths.has('rising') && !isIdle()) rising.clear(); // it is of now
  hasNewGroups = true;
  for (const [role, path] of paths) {
    if (open.has(role)) continue;
    waitsSoonUntil = performance.now() + IMPATIENT_MS;
    const channel = { path, stop: new AbortController(), buckets: role === 'posts' || role === 'rising' ? null : new Buckets(bucketMsOf(path)), isCaughtUp: false };
    open.set(role, channel);
    if (role === 'rising') rising.clear();
    if (role === 'posts') {
      feed.clear();
      skipped = '';
    }
    read(role, channel);
  }
  wake();
}

async function read(role, channel) {
  const isOpen = () => open.get(role) === channel;
  try {
    for await (const message of streams.read(channel.path, channel.stop.signal)) if (isOpen()) take(role, channel, message);
    channel.isComplete = true;
  } catch (error) {
    if (isOpen()) refuse(role, error);
  }
  wake();
}

function bucketMsOf(path) {
  return { '1s': 1000, '10s': 10_000, '1m': 60_000, '1h': 3_600_000 }[new URLSearchParams(path.split('?')[1]).get('bucket')];
}

function take(role, channel, message) {
  if (GROUPS.includes(role)) hasNewGroups = true;
  if (message.type === 'counts') takeCounts(channel, message);
  else if (message.type === 'trends') rising.take(message);
  else if (message.type === 'gap') takeGap(role, message);
  else if (message.type === 'warning') takeWarning(channel, message);
  else if (channel.behind) measureBehind(channel, message);
  if (message.type === 'post' || message.type === 'delete') feed.add(message);
  else if (message.type === 'skipped') skipped = `+${formatCount(message.events)} not shown`;
  wake();
}

// The server does not say when the stream has caught up, so that is seen from the ids of what comes.
function takeWarning(channel, { code, message, events, ms }) {
  if (code !== 'behind') {
    channel.warning = sentence(message);
    return;
  }
  if (!channel.behind) announce('The posts are behind.');
  channel.behind = { events, ms, until: performance.now() + WARNED_MS };
}

function measureBehind(channel, { id }) {
  const ms = id ? clock.now() - timeOfId(id) : channel.behind.ms;
  channel.behind = ms < OLD_MS ? null : { ...channel.behind, ms };
}

function takeCounts(channel, message) {
  const { buckets } = channel;
  buckets.take(message);
  if (!message.partial && !message.revision && !view.brush?.isPast) clock.heard(buckets.end, buckets.bucketMs);
  if (message.partial || buckets.end > clock.now() - 2 * buckets.bucketMs) channel.isCaughtUp = true;
}

// The chart shows it at its time; the feed shows that posts are missing.
function takeGap(role, message) {
  if (role === 'posts') feed.add(message);
  if (gaps.take(message)) announce(describeGap(message));
}

// The streams of a question fail together, so only one error is shown.
function refuse(role, { reason: message, param, at }) {
  const error = { message, param, at };
  const slot = LETTERS.indexOf(role);
  if (slot >= 0) asking.fail(error, view.questions[slot]);
  else if (role === 'posts') asking.fail(error, view.question);
}

/* --- actions of the user --- */

// To be called when the view has changed.
function changed() {
  view.map = map.shown;
  history.replaceState(null, '', `${location.pathname}${location.search}#${view.fragment}`);
  asking.text = view.question ?? '';
  map.setBoxes(boxesOf(view.question ?? ''));
  for (const input of $$('#ranges input')) input.checked = input.value === view.range;
  $('#log').checked = view.isLog;
  reconcile();
}

// Replaces the question in focus, or adds one.
function ask(text, isBeside) {
  const question = text.trim();
  if (!access.permits(requestOf(question).stream)) return;
  const same = view.questions.indexOf(question);
  if (isBeside) {
    if (!view.add(question)) {
      asking.say('At most four questions can be compared. Remove one first.');
      return;
    }
  } else if (same >= 0 && same !== view.focus) {
    view.focus = same;
  } else {
    view.question = question;
  }
  asking.clear();
  hint.close();
  announce(`Showing ${titleOf(view.question)}`);
  changed();
}

function pick(term, isBeside) {
  asking.check(narrow(view.question ?? '', term), isBeside);
}

function focusOn(slot) {
  if (!view.slots.includes(slot)) return;
  view.focus = slot;
  changed();
}

// Selects the last minute that has a post.
function brushLast() {
  const { bucketMs, lastPost } = focused()?.buckets ?? {};
  if (!lastPost) return;
  const to = lastPost + bucketMs;
  brush({ from: Math.max(shownTime().from, to - Math.max(bucketMs, MINUTE_MS)), to });
}

function brush(range) {
  view.brush = range && { ...range, window: view.brush?.window ?? shownTime(), isPast: view.brush?.isPast ?? false };
  changed();
  render(); // now, because the next key press starts from there
}

// Selects a time that was in the address, and puts it in the middle of the range.
function placeBrush() {
  if (!view.brush) return;
  const { from, to } = view.brush;
  const { ms, bucketMs } = RANGES[view.range];
  const length = Math.max(ms, to - from);
  const end = Math.ceil(Math.min(clock.now(), to + (length - (to - from)) / 2) / bucketMs) * bucketMs;
  view.brush = { from, to, window: { from: end - length, to: end }, isPast: true };
}

function pause(isOn) {
  isPaused = isOn;
  $('#pause').setAttribute('aria-pressed', String(isOn));
  put($('#pause'), isOn ? 'Resume' : 'Pause');
  reconcile();
  renderState();
}

// Esc: undoes the most recent choice.
function stepBack() {
  if (!$('#timeline-table').hidden) toggleTable();
  else if (isLarge()) enlarge(false);
  else if (view.brush) brush(null);
  else if (view.slots.length > 1) {
    view.remove(view.focus);
    changed();
  } else if (view.question) ask('', false);
}

function toggleTable() {
  const isShown = $('#timeline-table').hidden;
  $('#timeline-table').hidden = !isShown;
  $('#as-table').setAttribute('aria-pressed', String(isShown));
  render();
  if (isShown) $('#timeline-table').focus();
}

const isSmall = matchMedia('(max-width: 40rem), (pointer: coarse)'); // as in dashboard.css
const isLarge = () => $('.flow').classList.contains('is-large');
let watcher; // of the phone's own gesture to go back

// Lets the chart fill the screen, or ends that.
function enlarge(isOn) {
  $('.flow').classList.toggle('is-large', isOn);
  put($('#enlarge'), isOn ? 'Close' : 'Enlarge');
  for (const other of $$('.bar, .skip, main > :not(.flow, #say)')) other.inert = isOn;
  watcher?.destroy();
  watcher = isOn && globalThis.CloseWatcher ? new CloseWatcher() : null;
  if (watcher) watcher.onclose = () => enlarge(false);
}

function share(button) {
  view.map = map.shown;
  const url = new URL(location.href);
  url.hash = view.fragment;
  copyText(button, url.href);
}

function showDrawer() {
  const { bucket } = RANGES[view.range];
  const time = view.brush ? between(view.brush) : { since: `-${view.range}` };
  const path = (by, more = {}) => countsPath(view.question ?? '', { ...(by ? { by } : {}), bucket, ...more, ...time });
  const trendsPath = view.brush ? null : risingPath();
  const then = view.brush ? between(view.brush) : {};
  openDrawer([{ title: 'Posts', name: 'posts', path: postsPath(view.question ?? '', { ...then, max_rate: $('#pace').value }), isEvents: true, read: () => feed.shown() },
    { title: 'The chart', name: 'chart', path: path(), read: readChart },
    { title: 'Languages', name: 'lang', path: path('lang'), read: () => readGroups('lang') },
    { title: 'Countries', name: 'country', path: path('country'), read: () => readGroups('country') },
    { title: 'Rising', name: 'rising', path: trendsPath, read: () => rising.shown },
    { title: 'The map', name: 'cell', path: path('cell', { cell_degrees: String(map.cellDegrees) }), read: () => readGroups('cell') },
    { title: 'Who follows whom (not on the page)', path: isAllPermitted() ? postsPath('', { ...then, types: 'follow,unfollow' }) : null, isEvents: true }]
    .filter((panel) => panel.path));
}

// The data of the panels; missing buckets are unknown.
function readChart() {
  const { from, to } = shownTime();
  return { from: iso(from), to: iso(to), lines: view.slots.map((slot) => ({ letter: LETTERS[slot], question: view.questions[slot],
    counts: open.get(LETTERS[slot])?.buckets.within(from, to) ?? [] })) };
}

function readGroups(by) {
  const { from, to } = view.brush ?? shownTime();
  const { groups, rest } = groupsOf(by, from, to);
  return { from: iso(from), to: iso(to), question: view.question, groups: groups.map(([key, posts]) => ({ key, posts })), other: rest };
}

/* --- parts of the page --- */

const streams = new PageStreams((state) => { showState(state); wake(); });
const asking = new Asking({ onAsk: ask, onExamples: showThose, isOnline: () => streams.state.name === 'live' });
const access = new Access({
  onToken: connect,
  onOther: (stream) => {
    if (stream === 'filter') {
      view.question = null;
      asking.focus();
      wake();
    } else {
      ask({ sample: 'sample:1%', home: 'home:' }[stream], false);
    }
  },
});
const chips = new Chips({ onFocus: (slot) => (slot === view.focus ? asking.focus() : focusOn(slot)), onRemove: (slot) => { view.remove(slot); changed(); } });
const feed = new Feed({
  onChange: wake,
  onOpen: explain,
  onFont: ({ language, package: font }) => {
    missing.set(language, font);
    $('#fonts').hidden = false;
    put($('#fonts'), `Your system has no font for ${[...missing.keys()].join(', ')}: ${[...new Set(missing.values())].join(', ')}`);
  },
});
const timeline = new Timeline($('#timeline'), { onBrush: brush, onTap: () => { if (isSmall.matches) enlarge(true); }, onPoint: (ms) => { pointed = ms; renderPoint(); } });
const map = new WorldMap($('#map'), {
  onBox: (box, isBeside) => {
    announce(`In the box ${box.join(', ')}`);
    pick(boxTerm(box), isBeside);
  },
  onZoom: () => changed(),
});
const hint = new Hint((question) => asking.check(question, false));
const rising = new Rising((term) => asking.check(term, true));
const languages = new Ranks($('#languages'), { nameOf: languageName, unknown: 'und', onPick: (key, isBeside) => pick(`lang:${key}`, isBeside) });
const countries = new Ranks($('#countries'), { nameOf: countryName, unknown: 'none', onPick: (key, isBeside) => pick(`country:${key}`, isBeside) });

/* --- rendering --- */

let timer = null;
let quiet = null; // timer
let rendered = 0; // time of the last rendering
let titled = 0; // time of the last change of the title
let waitsSoonUntil = 0;
let hasNewGroups = true; // since the last rendering
let skipped = ''; // how many posts of the last second are not shown
let pointed = null; // time in ms under the pointer

// Renders soon after an action of the user, otherwise about once a second: the messages of a second arrive together,
// and become one frame.
function wake() {
  const now = performance.now();
  const delay = now < waitsSoonUntil ? SOON_MS : Math.max(TOGETHER_MS, rendered + FRAME_MS - now);
  timer ??= setTimeout(() => { timer = null; rendered = performance.now(); render(); }, delay);
}

const focused = () => open.get(LETTERS[view.focus]);
const isOldOf = (channel) => Boolean(channel) && !view.brush?.isPast && channel.buckets.end > 0
  && (streams.state.name !== 'live' || (channel.isCaughtUp && overdue(channel) > OLD_MS));
const overdue = ({ buckets }) => clock.now() - (buckets.running ? Math.max(buckets.end, buckets.running.start) + buckets.bucketMs : buckets.end) - buckets.bucketMs;

// The parts without complete data, and why: [{ from, to, words }, ...].
function holesOf(channel, { from, to }) {
  const { buckets } = channel;
  const isUntold = buckets.end === 0 && ['waiting', 'ended'].includes(streams.state.name);
  const end = isOldOf(channel) || isUntold ? to : Math.min(to, buckets.end);
  const isEdge = (hole) => hole.from <= from && hole.to - hole.from <= 2 * buckets.bucketMs; // the two clocks differ a little
  return buckets.holes(from, end).filter((hole) => !isEdge(hole)).map((hole) => ({ ...hole, words: wordsOfHole(channel, hole) }));
}

function wordsOfHole(channel, { from, to }) {
  const told = gaps.wordsAt(from, to);
  if (told) return told;
  if (to > channel.buckets.end) return { live: 'nothing received', ended: 'not connected' }[streams.state.name] ?? 'no answer from the server';
  return channel.isCaughtUp ? 'unknown' : 'loading …';
}

function render() {
  if (document.hidden || isPaused) return;
  const time = shownTime();
  for (const { buckets } of open.values()) if (!view.brush) buckets?.forgetBefore(time.from - 2 * buckets.bucketMs);
  const channel = focused();
  renderChart(channel, time); // first, because the canvas needs the style, and the feed the layout, of an unchanged page
  renderPosts();
  renderChips(time);
  renderNumbers(channel, time);
  if (hasNewGroups) renderGroups(view.brush ?? time);
  hasNewGroups = false;
  const terms = rising.show();
  if (terms) hint.suggest(terms);
  renderState();
  renderNothing(channel, time);
  grow(channel, time);
  clearTimeout(quiet);
  quiet = setTimeout(wake, QUIET_MS);
}

function renderPosts() {
  feed.show();
  $('#feed').hidden = feed.isEmpty;
  put($('#skipped'), skipped);
}

function renderChart(channel, time) {
  const lines = view.slots.map((slot) => [slot, open.get(LETTERS[slot])]).filter(([, one]) => one)
    .map(([slot, one]) => ({ slot, letter: LETTERS[slot], buckets: one.buckets, end: isOldOf(one) ? time.to : one.buckets.end }));
  const holes = channel ? holesOf(channel, time) : [];
  timeline.show({ ...time, bucketMs: RANGES[view.range].bucketMs, lines, focus: view.focus, isLog: view.isLog, brush: view.brush,
    now: clock.now(), holes });
  put($('#holes'), holes.map(describeHole).join(' · '));
  $('#holes').hidden = holes.length === 0;
  if (!$('#timeline-table').hidden) fillTable($('#timeline-table'), lines.map((line) => ({ ...line, title: titleOf(view.questions[line.slot]) })), time);
  renderPoint();
}

// Shows the numbers under the pointer.
function renderPoint() {
  const texts = pointed === null ? [] : view.slots.map((slot) => {
    const buckets = open.get(LETTERS[slot])?.buckets;
    const bucket = buckets?.at(Math.floor(pointed / buckets.bucketMs) * buckets.bucketMs);
    return `${LETTERS[slot]} ${bucket ? formatRate((bucket.posts * 1000) / buckets.bucketMs) : 'unknown'}`;
  });
  put($('#point'), pointed === null ? '' : `${clockTime(pointed)}   ${texts.join('   ')}`);
}

function renderChips({ from, to }) {
  chips.show(view, (slot) => {
    const channel = open.get(LETTERS[slot]);
    if (!channel) return { perSecond: null, change: null, points: '', isOld: true };
    const { buckets } = channel;
    const perSecond = view.brush ? buckets.rate(view.brush.from, view.brush.to) : steadyRate(buckets, from, to);
    return { perSecond, change: view.brush ? null : buckets.change(from, Math.min(to, buckets.end)), points: sparkline(buckets, from, to), isOld: isOldOf(channel) };
  });
}

// For rare posts the last bucket says little, so the last minute or the whole range is used.
function steadyRate(buckets, from, to) {
  const end = Math.min(to, buckets.end);
  const { perSecond } = buckets;
  if (perSecond === null || perSecond >= 5) return perSecond;
  const minute = buckets.rate(Math.max(from, end - 60_000), end);
  if (minute >= 5) return perSecond;
  return minute * 60 >= 3 ? minute : buckets.rate(from, buckets.reach);
}

function rateInWords(perSecond) {
  const [, number, unit] = /^([^/]*)\/?(.*)$/.exec(formatRate(perSecond));
  return [number, `posts ${{ min: 'a minute', h: 'an hour' }[unit] ?? 'a second'}`];
}

function renderNumbers(channel, time) {
  const { question } = view;
  const buckets = channel?.buckets;
  const when = view.brush ?? time;
  const perSecond = !buckets ? null : view.brush ? buckets.rate(when.from, when.to) : steadyRate(buckets, time.from, time.to);
  const [number, unit] = rateInWords(perSecond);
  put($('#rate'), number);
  put($('#rate-unit'), unit);
  const isOld = isOldOf(channel);
  $('.figure').classList.toggle('is-old', isOld);
  const { last, share, sums } = aboutParts(channel, when, isOld);
  for (const [name, part] of Object.entries({ last, share })) {
    $(`#${name}-part`).hidden = !part;
    put($(`#${name}-part button`), part ?? '');
  }
  put($('#sums'), sums);
  renderTitle(perSecond === null || isOld ? '' : formatRate(perSecond), titleOf(question ?? ''));
  $('#brushed').hidden = !view.brush;
  if (view.brush) put($('#brushed-text'), `${clockTime(view.brush.from)} to ${clockTime(view.brush.to)}`);
}

// A title in which only the rate has changed is not updated often.
function renderTitle(rate, question) {
  const name = rate ? ` · ${question} · Sluice` : 'Sluice, live';
  if (document.title.endsWith(name) && performance.now() - titled < TITLE_MS) return;
  titled = performance.now();
  document.title = rate + name;
}

// The numbers about the period: { last, share, sums }, of which the first two are buttons; those that are missing are unknown.
function aboutParts(channel, { from, to }, isOld) {
  if (!channel) return { sums: view.question !== null && requestOf(view.question).stream === 'home' ? 'Home streams have posts, but no counts' : '' };
  const { buckets } = channel;
  if (isOld) return { sums: `as of ${clockTime(buckets.end)}, ${Math.round((clock.now() - buckets.end) / 1000)} s ago` };
  const end = view.brush ? Math.min(to, buckets.end) : buckets.reach;
  const { posts, deletes, known, unknown } = buckets.sum(from, end);
  if (known === 0) return { sums: streams.state.name === 'live' && !channel.isCaughtUp ? 'loading the past …' : 'unknown' };
  const parts = [];
  let last, share;
  const quiet = view.brush || posts >= ENOUGH || !buckets.lastPost ? 0 : clock.now() - buckets.lastPost;
  if (quiet > FAR_MS) last = `last one ${formatSeconds(quiet / 1000)} ago`;
  const all = open.get('all') ?? open.get(LETTERS[view.questions.indexOf('')]);
  if (all && all !== channel) {
    const of = all.buckets.sum(from, Math.min(end, all.buckets.reach)).posts;
    if (of > 0) share = `${formatPercent(posts / of, 1)} of all`;
  }
  const span = view.brush ? '' : ` in ${RANGES[view.range].words}`;
  parts.push(`${formatCount(posts)} ${posts === 1 ? 'post' : 'posts'}${span}${unknown > 0 && known > 0 && channel.isCaughtUp ? ' (incomplete)' : ''}`);
  if (deletes > 0) parts.push(`${formatCount(deletes)} deleted`);
  if (!channel.isCaughtUp && !view.brush?.isPast) parts.push('loading the past …');
  return { last, share, sums: parts.join(' · ') };
}

const groupsOf = (by, from, to) => open.get(by)?.buckets.groups(from, to) ?? { groups: [], rest: 0 };

function renderGroups({ from, to }) {
  const byLanguage = groupsOf('lang', from, to);
  languages.show(byLanguage.groups, byLanguage.rest);
  const byCountry = groupsOf('country', from, to);
  countries.show(byCountry.groups, byCountry.rest);
  const cells = groupsOf('cell', from, to);
  map.setCells(map.cellDegrees, cells.groups, LETTERS[view.focus]);
  const all = cells.groups.reduce((sum, [, posts]) => sum + posts, cells.rest);
  put($('#placed'), all === 0 ? '' : `${formatCount(map.placed + cells.rest)} of ${formatCount(all)} have a place`);
  const steps = map.bounds.map((bound, i) => [i === 0 ? 1 : map.bounds[i - 1] + 1, bound]).filter(([low, high]) => low <= high);
  const texts = steps.map(([low, high]) => (low === high ? formatCount(low) : `${formatCount(low)}–${formatCount(high)}`));
  if ($('#map-legend').textContent !== texts.join('')) {
    $('#map-legend').replaceChildren(...texts.map((text, i) => make('li', {}, make(`span.step.step-${5 - texts.length + i}`, { 'aria-hidden': 'true' }), text)));
  }
  $('#map').dataset.line = LETTERS[view.focus];
}

/* --- state of the connection --- */

let isAwayTold = false; // announced once per outage, not for each attempt
let waitsUntil = 0;

function showState(state) {
  if (state.name === 'waiting') {
    waitsUntil = Date.now() + state.ms;
    if (!isAwayTold) announce(reasonOf(state));
    isAwayTold = true;
  } else if (state.name === 'ended') {
    showEnd(state.error);
  }
  if (state.name === 'live') isAwayTold = false;
  renderState();
}

function showEnd(error) {
  if (isEnded(streams.state)) return announce(reasonOf(streams.state));
  const isExpiredNow = error.code === 'token_expired' || isExpired(getToken());
  const [title, what] = isExpiredNow ? ['This token has expired', 'With a new token, the page continues where it stopped.']
    : error.code === 'token_revoked' ? ['This token was revoked', 'With another token, the page continues where it stopped.']
      : [error.status === 403 ? 'This token does not permit this' : 'This token is not accepted', sentence(error.reason)];
  const [other] = error.status === 403 ? permittedStreams(getToken()) : [];
  access.ask(title, what, other);
  return announce(what);
}

function renderState() {
  const { state } = streams;
  const channel = focused();
  const posts = open.get('posts');
  if (posts?.behind?.until < performance.now()) posts.behind = null;
  const isReading = Boolean(channel) && !channel.isCaughtUp && !view.brush?.isPast;
  if (!isReading) streams.measure();
  const { name, words, notice } = describeState({ state, until: waitsUntil, isReading, tripMs: streams.tripMs,
    away: channel?.buckets.end ? Math.max(0, Math.round((clock.now() - channel.buckets.end) / 1000)) : null,
    isSilent: isOldOf(channel), behind: posts?.behind, isExpiring: isExpired(getToken(), SOON_EXPIRED_MS) });
  $('#state').dataset.state = isPaused ? 'paused' : name;
  put($('#state-text'), isPaused ? 'Paused' : words);
  // The notice remains during an attempt, because text that disappears and returns cannot be read or clicked.
  if (state.name !== 'connecting') $('#notice').hidden = !notice;
  if (notice) put($('#notice-text'), notice);
  $('#try-now').hidden = state.name === 'live';
  put($('#try-now'), state.name === 'ended' ? 'Reconnect' : 'Try now');
  $('#warning').hidden = !posts?.warning || !$('#estimate').hidden || !$('#error').hidden;
  put($('#warning'), posts?.warning ?? '');
}

// The text in place of the feed if there are no posts.
function renderNothing(channel, { from }) {
  $('#nothing').hidden = !$('#feed').hidden;
  if ($('#nothing').hidden) return;
  put($('#nothing'), nothingText(channel, from));
  askObstacles(channel, from);
}

let obstructed = null; // the question whose obstacles are displayed

// If a question matches nothing, one of its items may be the reason.
async function askObstacles(channel, from) {
  const { question } = view;
  const isNone = question && channel?.isCaughtUp && !view.brush && channel.buckets.sum(from, channel.buckets.reach).posts === 0;
  if (!isNone) {
    $('#obstacles').hidden = true;
    obstructed = null;
    return;
  }
  if (obstructed === question) return;
  obstructed = question;
  const answer = await estimate(question);
  if (obstructed !== question || !answer?.estimate) return;
  const buttons = obstacles(answer.estimate).map(({ value, without }) => {
    const rest = leaveOut(question, value);
    const button = make('button.quiet', { type: 'button' }, `Without ${value}: ${formatCount(without)} in 10 min`);
    button.addEventListener('click', () => asking.check(rest, false));
    return rest === question ? null : button;
  }).filter(Boolean);
  $('#obstacles').replaceChildren(...buttons);
  $('#obstacles').hidden = buttons.length === 0;
}

function nothingText(channel, from) {
  if (!getToken()) return 'Enter a token to begin.';
  if (view.question === null) return 'Type what to look for and press Enter.';
  if (view.brush) return open.get('posts')?.isComplete ? 'No posts in this period.' : 'Loading …';
  if (!channel || !channel.isCaughtUp) return streams.state.name === 'live' ? 'Loading …' : '';
  const { posts, unknown } = channel.buckets.sum(from, channel.buckets.reach);
  const { words } = RANGES[view.range];
  if (posts > 0) return 'New posts appear here.';
  if (view.question === '') return `No posts in ${words}${unknown > 0 ? ' (incomplete)' : ''}. To write one: sluice post --user NAME 'Good morning'`;
  return `No matching posts in ${words}. New posts appear here.`;
}

// For rare posts the range is extended until it contains enough of them.
function grow(channel, { from, to }) {
  if (!isGrowing || view.brush || !view.question || !channel?.isCaughtUp) return;
  if (channel.buckets.sum(from, to).posts >= ENOUGH) return;
  const names = Object.keys(RANGES);
  const next = names[names.indexOf(view.range) + 1];
  if (!next) return;
  view.range = next;
  changed();
}

// Shows by which questions, and which of their parts, a post was matched.
async function explain(event, place) {
  const parts = await why(streams, view.slots.map((slot) => [LETTERS[slot], view.questions[slot]]), event);
  place.replaceChildren(...parts.map(({ letter, question, terms }) => make('span', {}, make(`span.swatch.line-${letter}`, {}, letter),
    make('bdi', {}, terms.length > 0 ? `${titleOf(question)}: matched by ${terms.map(titleOf).join(', ')}` : titleOf(question)))));
}

// Shows examples for the text in the field, before it is submitted.
function showThose(events) {
  $('#examples').hidden = events.length === 0;
  $('#examples-rows').replaceChildren(...events.filter(({ post }) => post?.text).map(postRow));
}

/* --- starting --- */

$('#pause').addEventListener('click', () => pause(!isPaused));
$('#share').addEventListener('click', ({ target }) => share(target));
$('#code').addEventListener('click', showDrawer);
$('#help').addEventListener('click', () => $('#keys').showModal());
$('#as-table').addEventListener('click', toggleTable);
$('#enlarge').addEventListener('click', () => enlarge(!isLarge()));
$('#back-to-live').addEventListener('click', () => brush(null));
for (const part of ['#rate-part', '#last-part button']) $(part).addEventListener('click', brushLast);
$('#share-part button').addEventListener('click', () => ask('', true));
$('#ranges').addEventListener('change', ({ target }) => {
  isGrowing = false;
  view.range = target.value;
  view.brush = null;
  changed();
});
for (const id of ['pace', 'window']) $(`#${id}`).addEventListener('change', reconcile);
$('#log').addEventListener('change', ({ target }) => { view.isLog = target.checked; changed(); });
$('#views').addEventListener('change', ({ target }) => { $('main').dataset.view = target.value; wake(); });
$('#try-now').addEventListener('click', () => streams.reconnect());
addEventListener('pageshow', ({ persisted }) => { if (persisted) connect(); });
addEventListener('online', () => { if (streams.state.name === 'waiting') streams.reconnect(); });
document.addEventListener('visibilitychange', () => reconcile());
for (const button of $$('[data-copy]')) button.addEventListener('click', () => copyText(button, $(`#${button.dataset.copy}`).textContent));
$('.skip').addEventListener('click', (event) => { // not by the fragment, which view.js uses
  event.preventDefault();
  $($('#feed').hidden ? '#nothing' : '#feed').focus();
});
listenToKeys({ onField: () => asking.focus(), onFocus: focusOn, onPause: () => pause(!isPaused), onBack: stepBack, onTable: toggleTable, onHelp: () => $('#keys').showModal() });

function begin() {
  takeTokenFromAddress();
  const fragment = location.hash.slice(1);
  const isFormer = formerQuestion(fragment) !== null;
  isGrowing = !new URLSearchParams(fragment).has('range');
  const isAsked = view.recall(fragment);
  placeBrush();
  map.shown = view.map;
  if (isFormer) history.replaceState(null, '', `${location.pathname}${location.search}#${view.fragment}`);
  hint.open();
  const [stream] = permittedStreams(getToken());
  if (!isAsked && stream && stream !== 'firehose') view.question = null;
  changedQuietly();
  if (!getToken()) access.ask('Token required', 'The streams of this server need a token.');
  else if (view.question === null) access.permits('firehose');
  connect();
}

// Like changed(), without changing the address.
function changedQuietly() {
  asking.text = view.question ?? '';
  map.setBoxes(boxesOf(view.question ?? ''));
  for (const input of $$('#ranges input')) input.checked = input.value === view.range;
  $('#log').checked = view.isLog;
}

begin();
addEventListener('hashchange', begin); // when an address is pasted into this tab
