// hint.js - one line for somebody who is here for the first time: what this is, and questions to try.

import { $, make } from './dom.js';
import { ruleOf } from './rising.js';

const KEY = 'sluice.hint';
const SURE = 5; // a score of trends that is not chance
const ALWAYS = ['coffee', '#rain']; // while nothing rises

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

  // Unless somebody has closed it before, or comes with a question.
  open() {
    if (localStorage.getItem(KEY) || location.hash) return;
    this.suggest([]);
    $('#hint').hidden = false;
  }

  close() {
    $('#hint').hidden = true;
  }

  // The questions to try, from `terms` that rise.
  suggest(terms) {
    const texts = [...terms.filter(({ score }) => score >= SURE).map(({ term }) => ruleOf(term)), ...ALWAYS].slice(0, 2);
    if (this.words === texts.join()) return;
    this.words = texts.join();
    $('#hint-text').replaceChildren('Everything posted here, live. Try: ', ...[...texts, 'lang:ja'].map((text) => this.button(text)), ' or draw a box.');
  }

  button(text) {
    const button = make('button.quiet', { type: 'button' }, text);
    button.addEventListener('click', () => this.onTry(text));
    return button;
  }
}
