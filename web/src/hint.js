// hint.js - one line for the first visit: what the page shows, and questions to try.

import { $, make } from './dom.js';
import { ruleOf } from './rising.js';

const KEY = 'sluice.hint';
const SURE = 5; // a trend score that is not chance
const ALWAYS = ['coffee', '#rain']; // if nothing is rising

export class Hint {
  // onTry(question)
  constructor(onTry) {
    this.onTry = onTry;
    this.words = null;
    $('#hint-close').addEventListener('click', () => {
      localStorage.setItem(KEY, 'closed');
      this.close();
    });
  }

  // Not if it was closed before, or if the address has a question.
  open() {
    if (localStorage.getItem(KEY) || location.hash) return;
    this.suggest([]);
    $('#hint').hidden = false;
  }

  close() {
    $('#hint').hidden = true;
  }

  // Suggests questions, made of the rising `terms`.
  suggest(terms) {
    const texts = [...terms.filter(({ score }) => score >= SURE).map(({ term }) => ruleOf(term)), ...ALWAYS].slice(0, 2);
    if (this.words === texts.join()) return;
    this.words = texts.join();
    $('#hint-text').replaceChildren('Everything posted here, live. Try: ', ...[...texts, 'lang:ja'].map((text) => this.button(text)), make('span.desk', {}, ' or draw a box.'));
  }

  button(text) {
    const button = make('button.quiet', { type: 'button' }, text);
    button.addEventListener('click', () => this.onTry(text));
    return button;
  }
}
