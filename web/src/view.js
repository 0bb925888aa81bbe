// view.js - the user's choices, and their form in the address.
//
// Each of up to four questions has a letter, a colour and a dash pattern. One of them has the focus: the lower row
// shows it. The fragment of the address contains all choices, and never the token.

import { RANGES } from './buckets.js';
import { formerQuestion } from './former.js';

export const LETTERS = ['a', 'b', 'c', 'd'];
const FIRST_RANGE = '15m';

export class View {
  constructor() {
    this.questions = ['', null, null, null]; // null: none
    this.focus = 0;
    this.range = FIRST_RANGE;
    this.brush = null; // { from, to } in ms: the selected time, which the lower row shows
    this.isLog = false;
    this.map = null; // the visible part; see WorldMap.shown
  }

  get question() {
    return this.questions[this.focus];
  }

  set question(text) {
    this.questions[this.focus] = text;
  }

  // The indices that have a question.
  get slots() {
    return LETTERS.map((_, i) => i).filter((i) => this.questions[i] !== null);
  }

  // Adds a question; returns false if there are four.
  add(text) {
    const same = this.questions.indexOf(text);
    const free = same >= 0 ? same : this.questions.indexOf(null);
    if (free < 0) return false;
    this.questions[free] = text;
    this.focus = free;
    return true;
  }

  remove(slot) {
    if (this.slots.length < 2) return;
    this.questions[slot] = null;
    if (this.focus === slot) [this.focus] = this.slots;
  }

  get fragment() {
    const fragment = new URLSearchParams();
    for (const slot of this.slots) fragment.set(LETTERS[slot], this.questions[slot]);
    if (this.slots.length > 1) fragment.set('focus', LETTERS[this.focus]);
    if (this.range !== FIRST_RANGE) fragment.set('range', this.range);
    if (this.isLog) fragment.set('scale', 'log');
    if (this.map) fragment.set('map', this.map);
    if (this.brush) fragment.set('t', [this.brush.from, this.brush.to].map((ms) => new Date(ms).toISOString()).join('/'));
    return fragment.toString();
  }

  // Returns false if the fragment contains no question.
  recall(text) {
    const fragment = new URLSearchParams(text);
    const questions = LETTERS.map((letter) => fragment.get(letter));
    questions[0] ??= formerQuestion(text);
    if (questions.every((question) => question === null)) return false;
    this.questions = questions;
    this.focus = Math.max(0, LETTERS.indexOf(fragment.get('focus')));
    if (questions[this.focus] === null) [this.focus] = this.slots;
    this.range = fragment.get('range') in RANGES ? fragment.get('range') : FIRST_RANGE;
    this.isLog = fragment.get('scale') === 'log';
    this.map = fragment.get('map');
    const [from, to] = (fragment.get('t') ?? '').split('/').map(Date.parse);
    this.brush = from < to ? { from, to } : null;
    return true;
  }
}
