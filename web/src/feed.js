// feed.js - posts as rows, newest first.
//
// While the user reads, nothing moves: new posts wait.

import { $, ICON_REPLY, icon, make, put } from './dom.js';
import { missingFont } from './fonts.js';
import { describeGap } from './gaps.js';
import { countryName, languageName } from './names.js';
import { directionOf, splitText } from './text.js';

export const KEPT = 60;
const READ_ON_PX = 40; // a user who has scrolled down further than this is reading
const AGE_MS = 5000; // how often the displayed ages are updated, and their unit below a minute

const EMOJI = /(\p{Emoji_Presentation}[\p{Emoji}\u200d\ufe0f]*)/u;

// Text fonts contain black outlines of some emoji, so emoji have a class with another font in dashboard.css.
function withEmoji(text) {
  return text.split(EMOJI).map((part, i) => (i % 2 ? make('span.emoji', {}, part) : part));
}

function textNodes(parts) {
  return parts.flatMap(({ kind, text: part }) => {
    if (kind === 'tag') return make('span.tag', {}, part);
    if (kind === 'name') return make('span.name', {}, part);
    if (kind === 'link') {
      return make('a', { href: part, target: '_blank', rel: 'noopener noreferrer nofollow' },
        part.replace(/^https?:\/\/(www\.)?/i, ''));
    }
    return withEmoji(part);
  });
}

function languageOf(tag) {
  return /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/.test(tag ?? '') && tag !== 'und' ? tag : null;
}

const placeOf = ({ place }) => place?.name ?? (place?.country ? countryName(place.country) : null);

function age(ms) {
  if (ms < AGE_MS) return 'now';
  if (ms < 60_000) return `${Math.floor(ms / AGE_MS) * 5} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 86_400_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

export function postRow(event) {
  const { post } = event;
  const { user } = post;
  const at = Date.parse(event.at ?? post.created_at);
  const language = languageOf(post.lang);
  const place = placeOf(post);
  const parts = splitText(post.text);
  return make('article.row', { tabindex: '-1' },
    make('header', {}, make('span.by', {},
      make('bdi.who', {}, user.name || user.login || user.id),
      user.login ? make('bdi', {}, `@${user.login}`) : null,
      post.reply_to ? make('span', {}, icon(ICON_REPLY), make('bdi', {}, post.reply_to.login ? `@${post.reply_to.login}` : 'a post')) : null,
      place ? make('bdi', {}, place) : null,
      language ? make('span', { title: languageName(language) }, language) : null),
      Number.isNaN(at) ? null : make('time', { datetime: new Date(at).toISOString(), title: new Date(at).toLocaleString() })),
    make('p.text', { dir: directionOf(parts), lang: language }, ...textNodes(parts)));
}

export class Feed {
  // onChange(): show() is to be called soon; onFont(text): no font for a script;
  // onOpen(event, place): a row was opened, and `place` is an element for more about it.
  constructor({ onChange, onFont, onOpen }) {
    Object.assign(this, { onChange, onFont, onOpen });
    this.list = $('#feed');
    this.newer = $('#newer');
    this.canHover = matchMedia('(hover: hover)');
    this.clear();
    this.newer.addEventListener('click', () => {
      if (this.list === this.scroller()) this.list.scrollTo({ top: 0 });
      else $('.posts').scrollIntoView();
      this.isAsked = true;
      this.list.focus({ preventScroll: true });
      this.show();
    });
    this.list.addEventListener('keydown', (event) => this.key(event));
    this.list.addEventListener('click', ({ target }) => {
      const row = target.closest('.row');
      if (row && !target.closest('a, pre') && getSelection().isCollapsed) this.toggle(row);
    });
    this.list.addEventListener('pointerleave', () => { this.isAsked = false; this.onChange(); });
  }

  clear() {
    this.list.replaceChildren();
    this.rows = new Map(); // post id -> row, for the displayed rows
    this.events = new WeakMap(); // row -> event
    this.batch = [];
    this.aged = Date.now(); // when the ages of all rows were updated
    this.renderNewer(false);
  }

  get isEmpty() {
    return this.list.firstChild === null;
  }

  add(event) {
    if (event.type === 'delete') this.strike(event);
    else if (event.type === 'gap' || !this.rows.has(event.post.id)) this.batch.push(event);
    if (this.batch.length > KEPT) this.batch.shift();
  }

  strike({ post }) {
    const waiting = this.batch.find((event) => event.type === 'post' && event.post.id === post.id);
    if (waiting) waiting.isDeleted = true;
    const row = this.rows.get(post.id);
    if (row) strikeOut(row);
  }

  scroller() {
    return getComputedStyle(this.list).overflowY === 'visible' ? document.scrollingElement : this.list;
  }

  // The user reads if the pointer is over a post, the feed is scrolled down, a row has the focus or is open, or text is
  // selected. Then nothing must move.
  isRead() {
    if (this.list.offsetHeight === 0) return false; // empty, or behind the map
    const { activeElement } = document;
    const selection = getSelection();
    if (activeElement !== this.list && this.list.contains(activeElement)) return true;
    if ($('.row.is-open', this.list)) return true;
    if (!this.isAsked && this.canHover.matches && this.list.matches(':hover')) return true;
    if (!selection.isCollapsed && this.list.contains(selection.anchorNode)) return true;
    return this.list === this.scroller() ? this.list.scrollTop > READ_ON_PX
      : this.list.getBoundingClientRect().top < $('.bar').offsetHeight - READ_ON_PX;
  }

  // As in the ARIA pattern for feeds, Page Down and Page Up move from row to row.
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const row = event.target.closest('.row');
    const way = { PageDown: 'nextElementSibling', PageUp: 'previousElementSibling' }[event.key];
    if (event.key === 'Enter' && row === event.target) this.toggle(row);
    else if (!way) return;
    else {
      const next = row ? row[way] : way === 'nextElementSibling' && this.list.firstElementChild;
      if (next) next.focus();
      else this.list.focus();
      this.onChange();
    }
    event.preventDefault();
  }

  // Shows the event itself below its row.
  toggle(row) {
    const event = this.events.get(row);
    const isOpen = row.classList.toggle('is-open');
    $('.more', row)?.remove();
    if (isOpen && event) {
      const place = make('p.why');
      row.append(make('div.more', {}, place, make('pre', { tabindex: '0', 'aria-label': 'The event as JSON' }, JSON.stringify(event, null, 2))));
      this.onOpen(event, place);
    }
    this.onChange();
  }

  // Shows the new posts, unless the user reads. To be called before the page is changed, because isRead() needs its
  // layout.
  show() {
    const isWaiting = this.batch.length > 0 && this.isRead();
    this.renderNewer(isWaiting);
    if (!isWaiting) {
      const rows = this.batch.map((event) => this.row(event)).reverse();
      this.batch = [];
      this.list.prepend(...rows);
      showAges(rows);
      while (this.list.childElementCount > KEPT) this.dropOldest();
    }
    if (Date.now() - this.aged < AGE_MS) return;
    this.aged = Date.now();
    showAges(this.list.children);
  }

  // The events of the rows, newest first.
  shown() {
    return [...this.list.children].map((row) => this.events.get(row)).filter(Boolean);
  }

  row(event) {
    if (event.type === 'gap') return make('article.row.note', { tabindex: '-1' }, make('p', {}, describeGap(event)));
    const row = postRow(event);
    row.dataset.post = event.post.id;
    this.rows.set(event.post.id, row);
    this.events.set(row, event);
    if (event.isDeleted) strikeOut(row);
    const font = missingFont(event.post.text);
    if (font) this.onFont(font);
    return row;
  }

  dropOldest() {
    const row = this.list.lastElementChild;
    if (this.rows.get(row.dataset.post) === row) this.rows.delete(row.dataset.post);
    row.remove();
  }

  renderNewer(isWaiting) {
    this.newer.hidden = !isWaiting;
    if (isWaiting) this.newer.textContent = `${this.batch.length}${this.batch.length >= KEPT ? '+' : ''} new`;
  }
}

function showAges(rows) {
  for (const row of rows) {
    const time = $('time', row);
    if (time) put(time, age(Date.now() - Date.parse(time.dateTime)));
  }
}

function strikeOut(row) {
  const text = $('.text', row);
  if (row.classList.contains('is-deleted') || !text) return;
  row.classList.add('is-deleted');
  const struck = document.createElement('del');
  struck.append(...text.childNodes);
  text.append(struck);
  $('header', row).append(make('span.deleted', {}, 'deleted'));
}
