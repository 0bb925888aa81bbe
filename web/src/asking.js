// asking.js - the search field, its errors and its estimate.

import { $, announce, make } from './dom.js';
import { Estimating } from './estimate.js';
import { describeFault, sentence } from './fault.js';
import { countsPath } from './question.js';
import { getToken } from './token.js';

export class Asking {
  // onAsk(text, isBeside): show this question; onExamples(events): examples of what it matches; isOnline(): whether the
  // server can be reached.
  constructor({ onAsk, onExamples, isOnline }) {
    Object.assign(this, { onAsk, isOnline });
    this.input = $('#question');
    $('#ask').addEventListener('submit', (event) => {
      event.preventDefault();
      this.check(this.input.value, false);
    });
    this.estimating = new Estimating({ onError: (error, typed) => this.point(error, typed), onGood: () => this.clearError(), onExamples });
    this.input.addEventListener('input', () => {
      this.isTyping = true;
      this.estimating.typed(this.input.value);
    });
    $('#compare').addEventListener('click', () => this.check(this.input.value, true));
    this.input.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || !event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.check(this.input.value, true);
    });
  }

  get text() {
    return this.input.value;
  }

  // Does nothing while the user is typing.
  set text(text) {
    if (this.isTyping || this.input.value === text) return;
    this.input.value = text;
    this.clearError();
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  // If the question is refused, nothing of what is shown changes.
  async check(text, isBeside) {
    const path = countsPath(text, { bucket: '1s', since: '-1s' }, '/v1/counts');
    const error = path && getToken() && this.isOnline() ? await askWhy(path) : null;
    if (error) this.fail(error, text);
    else this.onAsk(text, isBeside);
  }

  clear() {
    this.isTyping = false;
    this.estimating.clear();
    this.clearError();
  }

  clearError() {
    $('#error').hidden = true;
    this.input.removeAttribute('aria-invalid');
  }

  say(text) {
    this.clear();
    this.show(text);
    announce(text);
  }

  // Shows an error of the server about `text`, which the user asked to show.
  fail(error, text) {
    this.clear();
    if (this.input.value !== text) this.input.value = text;
    const place = this.point(error, text);
    announce($('#error-text').textContent);
    if (place && document.activeElement === this.input) this.input.setSelectionRange(...place);
  }

  show(text) {
    $('#error').hidden = false;
    $('#error-place').hidden = true;
    $('#error-text').textContent = text;
  }

  // Shows what is wrong and where. Returns the position of the character in `text`, [from, to], or null. Does not move the
  // caret, because the user may be typing.
  point({ message, param, at = -1 }, text) {
    const rule = text.trimStart();
    this.show(at >= 0 ? describeFault(message, rule.trimEnd(), at) : sentence(message));
    this.input.setAttribute('aria-invalid', 'true');
    if (at < 0 || param !== 'rule') return null;
    const characters = [...rule];
    const mark = make('mark', {}, characters[at] ?? ' ');
    $('#error-place').replaceChildren(characters.slice(0, at).join(''), mark, characters.slice(at + 1).join(''));
    $('#error-place').hidden = false;
    const from = text.length - rule.length + characters.slice(0, at).join('').length;
    return [from, from + (characters[at]?.length ?? 0)];
  }
}

// Resolves to the server's error for a request; null: none, or one that the stream itself reports.
async function askWhy(path) {
  try {
    const response = await fetch(path, { headers: { Authorization: `Bearer ${getToken()}` }, cache: 'no-store', credentials: 'omit' });
    if (response.status !== 400 && response.status !== 413) return null;
    return (await response.json()).error;
  } catch {
    return null;
  }
}
