// view.js - what the page is asked for, and its place in the address.
//
// Up to four questions have a letter, a colour and a dash each; one of them, the focus, is what the
// lower row is about. The fragment of the address says all of it, and never has the token.

import { RANGES } from './buckets.js';
import { formerQuestion } from './former.js';

export const LETTERS = ['a', 'b', 'c', 'd'];
const FIRST_RANGE = '15m';

export class View {
  constructor() {
    this.questions = ['', null, null, null]; // null: there is none
    this.focus = 0;
    this.range = FIRST_RANGE;
    this.brush = null; // { from, to } in ms: the lower row is about then
    this.isLog = false;
    this.map = null; // what is seen of it: see WorldMap.shown
  }

  get question() {
    return this.questions[this.focus];
  }

  set question(text) {
    this.questions[this.focus] = text;
  }

  // The places that have a question.
  get slots() {
    return LETTERS.map((_, i) => i).filter((i) => this.questions[i] !== null);
  }

  // Beside the others; false: there are four.
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

  // False: the fragment asks nothing.
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
