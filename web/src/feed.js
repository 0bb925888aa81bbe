// feed.js - posts as cards, newest first.
//
// A stream may bring thousands of posts a second, a reader takes in a few. So posts are collected
// and shown together some times a second, and when more come than the budget allows, a sample of
// them is shown: each post of a batch has the same chance. Deletions are never sampled; they strike
// the card out, if there is one.

import { $, ICON_PIN, ICON_REPLY, icon, make } from './dom.js';
import { clockTime, timeOfId } from './ids.js';
import { directionOf, splitText } from './text.js';

const BATCH_MS = 250;
const CARDS_PER_SECOND = 12;
const BURST = 60;
const KEPT = 120;
const CALM = 2; // cards a batch: fewer slide in, more would flicker
const SAMPLE_WINDOW_MS = 5000;
const READ_ON_PX = 40; // who has scrolled further down reads

const NOTES = new Set(['gap', 'turn']); // are never sampled

const TONES = 8; // .tone-0 ... of dashboard.css

function toneOf(id) {
  let hash = 7;
  for (const c of String(id)) hash = (hash * 31 + c.codePointAt(0)) >>> 0;
  return hash % TONES;
}

function textNodes(parts) {
  return parts.map(({ kind, text: part }) => {
    if (kind === 'tag') return make('span.tag', {}, part);
    if (kind === 'name') return make('span.name', {}, part);
    if (kind === 'link') {
      return make('a', { href: part, target: '_blank', rel: 'noopener noreferrer nofollow' },
        part.replace(/^https?:\/\/(www\.)?/i, ''));
    }
    return part;
  });
}

function initialOf(name) {
  const [letter = ''] = name; // a code point: some browsers cannot find whole graphemes
  const first = Intl.Segmenter ? new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(name).containing(0)?.segment : letter;
  return (first ?? '').toLocaleUpperCase();
}

const degrees = (value, positive, negative) => `${Math.abs(value).toFixed(2)}° ${value < 0 ? negative : positive}`;

function placeOf({ place, geo }) {
  const name = place?.name ?? (geo ? `${degrees(geo.lat, 'N', 'S')} ${degrees(geo.lon, 'E', 'W')}` : null);
  return name && make('span.meta', { dir: 'auto' }, icon(ICON_PIN), name);
}

function languageOf(tag) {
  return /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/.test(tag ?? '') && tag !== 'und' ? tag : null;
}

function postCard(event) {
  const { post } = event;
  const { user } = post;
  const name = user.name || user.login || user.id;
  const at = Date.parse(event.at ?? post.created_at);
  const language = languageOf(post.lang);
  const parts = splitText(post.text);
  return make('article.card', { tabindex: '-1' },
    make(`span.avatar.tone-${toneOf(user.id)}`, { 'aria-hidden': 'true' }, initialOf(name)),
    make('header', {},
      make('bdi.who', {}, name),
      user.login ? make('bdi.login', {}, `@${user.login}`) : null,
      Number.isNaN(at) ? null
        : make('time', { datetime: new Date(at).toISOString(), title: new Date(at).toLocaleString() },
          clockTime(at))),
    post.reply_to ? make('p.meta', {}, icon(ICON_REPLY), 'in reply to ',
      make('bdi', {}, post.reply_to.login ? `@${post.reply_to.login}` : `post ${post.reply_to.post}`)) : null,
    make('p.text', { dir: directionOf(parts), lang: language }, ...textNodes(parts)),
    make('footer', {}, placeOf(post), language ? make('span.meta', {}, language) : null));
}

function followCard(event) {
  const who = ({ login, name, id }) => make('bdi.who', {}, name || (login ? `@${login}` : id));
  return make('article.card.small', { tabindex: '-1' },
    make('p', {}, who(event.user), event.type === 'follow' ? ' follows ' : ' no longer follows ',
      who(event.target)));
}

function gapCard({ from, to, reason }) {
  const why = {
    retention: 'they are no longer kept',
    rewound: 'a failover of Redis lost them',
    redis: 'they cannot be read',
    unlogged: 'they were published without the log',
  }[reason] ?? reason;
  return make('article.card.note', { tabindex: '-1' }, make('p', {},
    Number(from) > 0 ? `Events from ${clockTime(timeOfId(from))} to ${clockTime(timeOfId(to))} are missing: ${why}.`
      : `Events up to ${clockTime(timeOfId(to))} are missing: ${why}.`));
}

// What the cards above it were asked for with.
function turnCard(text) {
  return make('article.card.turn', { tabindex: '-1' }, make('p', { dir: 'auto' }, text));
}

export class Feed {
  // `onEmpty(isEmpty)`: whether there is a card has changed.
  constructor(onEmpty) {
    this.onEmpty = onEmpty;
    this.list = $('#feed');
    this.newer = $('#newer');
    this.cards = new Map(); // post id -> card, of those that are shown
    this.clear();
    setInterval(() => this.show(), BATCH_MS);
    this.newer.addEventListener('click', () => {
      if (this.list === this.scroller()) this.list.scrollTo({ top: 0 });
      else $('.posts').scrollIntoView();
      this.list.focus({ preventScroll: true });
      this.show();
    });
    this.list.addEventListener('keydown', (event) => this.key(event));
  }

  clear() {
    this.list.replaceChildren();
    this.cards.clear();
    this.batch = [];       // events to show
    this.batchSeen = 0;    // posts it was drawn from
    this.budget = BURST;
    this.history = [];     // { at, seen, shown } of the last batches
    this.renderSampling();
    this.renderNewer();
    this.onEmpty(true);
  }

  // Each of the posts since the last batch has the same chance (reservoir sampling).
  add(event) {
    if (event.type === 'delete') {
      this.strike(event);
      return;
    }
    const room = Math.max(1, Math.floor(this.budget));
    this.batchSeen++;
    if (this.batch.length < room) {
      this.batch.push(event);
      return;
    }
    const place = Math.floor(Math.random() * this.batchSeen);
    if (place < this.batch.length && !NOTES.has(this.batch[place].type)) {
      this.batch.splice(place, 1);
      this.batch.push(event);
    }
  }

  note(message) {
    this.batch.push({ type: 'gap', message });
  }

  // From here on it is another stream.
  turn(text) {
    if (this.list.childElementCount + this.batch.length > 0) this.batch.push({ type: 'turn', text });
  }

  strike({ post }) {
    const waiting = this.batch.find((event) => event.type === 'post' && event.post.id === post.id);
    if (waiting) waiting.isDeleted = true;
    const card = this.cards.get(post.id);
    if (card) strikeOut(card);
  }

  scroller() {
    return getComputedStyle(this.list).overflowY === 'visible' ? document.scrollingElement : this.list;
  }

  // Somebody who has scrolled down, or goes from post to post, or has marked some text, reads:
  // nothing must move under their eyes.
  isRead() {
    if (this.list.offsetHeight === 0) return false; // empty, or behind the map
    const { activeElement } = document;
    const selection = getSelection();
    if (activeElement !== this.list && this.list.contains(activeElement)) return true;
    if (!selection.isCollapsed && this.list.contains(selection.anchorNode)) return true;
    return this.list === this.scroller() ? this.list.scrollTop > READ_ON_PX
      : this.list.getBoundingClientRect().top < $('.bar').offsetHeight - READ_ON_PX;
  }

  // As the pattern for feeds has it: Page Down and Page Up go from card to card.
  key(event) {
    const way = { PageDown: 'nextElementSibling', PageUp: 'previousElementSibling' }[event.key];
    if (!way || event.ctrlKey || event.altKey || event.metaKey) return;
    const card = event.target.closest('.card');
    const next = card ? card[way] : way === 'nextElementSibling' && this.list.firstElementChild;
    if (next) next.focus();
    else this.list.focus();
    event.preventDefault();
  }

  show() {
    this.budget = Math.min(BURST, this.budget + (CARDS_PER_SECOND * BATCH_MS) / 1000);
    if (this.isRead() && this.batch.length > 0) {
      this.renderNewer();
      return;
    }
    if (this.batch.length > 0) {
      const cards = this.batch.map((event) => this.card(event)).reverse();
      if (cards.length <= CALM) for (const card of cards) card.classList.add('arrives');
      this.list.prepend(...cards);
      this.onEmpty(false);
      while (this.list.childElementCount > KEPT) this.dropOldest();
    }
    this.history.push({ at: Date.now(), seen: this.batchSeen, shown: this.batch.length });
    this.history = this.history.filter(({ at }) => at > Date.now() - SAMPLE_WINDOW_MS);
    this.budget = Math.max(0, this.budget - this.batch.length);
    this.batch = [];
    this.batchSeen = 0;
    this.renderSampling();
    this.renderNewer();
  }

  card(event) {
    if (event.type === 'gap') return gapCard(event.message);
    if (event.type === 'turn') return turnCard(event.text);
    if (event.type !== 'post') return followCard(event);
    const card = postCard(event);
    card.dataset.post = event.post.id;
    this.cards.set(event.post.id, card);
    if (event.isDeleted) strikeOut(card);
    return card;
  }

  dropOldest() {
    const card = this.list.lastElementChild;
    if (this.cards.get(card.dataset.post) === card) this.cards.delete(card.dataset.post);
    card.remove();
  }

  renderSampling() {
    let seen = 0;
    let shown = 0;
    for (const batch of this.history) {
      seen += batch.seen;
      shown += batch.shown;
    }
    const sampling = $('#sampling');
    sampling.hidden = seen <= shown || shown === 0;
    sampling.textContent = sampling.hidden ? '' : `Showing about 1 post in ${Math.round(seen / shown)}`;
  }

  renderNewer() {
    const waits = this.batch.length > 0 && this.isRead();
    this.newer.hidden = !waits;
    if (waits) this.newer.textContent = this.batchSeen === 1 ? '1 newer' : `${this.batchSeen.toLocaleString()} newer`;
  }
}

function strikeOut(card) {
  const text = $('.text', card);
  if (card.classList.contains('is-deleted') || !text) return;
  card.classList.add('is-deleted');
  const struck = document.createElement('del');
  struck.append(...text.childNodes);
  text.append(struck);
  $('footer', card).prepend(make('span.meta.deleted', {}, 'Deleted'));
}
