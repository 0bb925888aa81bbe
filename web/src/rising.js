// rising.js - terms that more users write than before; a click compares one with the question.

import { $, make } from './dom.js';
import { formatNumber } from './format.js';

const MOST = 8;
const SVG = 'http://www.w3.org/2000/svg';
const BARE = /^[#$@]?[\p{L}\p{M}\p{N}_]+$/u;

// The term as an item of a rule.
export const ruleOf = (term) => (BARE.test(term) ? term : `"${term.replaceAll('"', '')}"`);

export function formatFactor({ users, before }) {
  if (before === 0) return 'new';
  const factor = users / before;
  return `×${formatNumber(factor, { maximumFractionDigits: factor < 10 ? 1 : 0 })}`;
}

// Hashtags and words in one list, highest score first; a word that is also listed as a hashtag is left out.
export function mergeTerms(lists) {
  const terms = lists.flat().sort((a, b) => b.score - a.score);
  const tags = new Set(terms.map(({ term }) => term).filter((term) => term.startsWith('#')));
  return terms.filter(({ term }) => !tags.has(`#${term}`)).slice(0, MOST);
}

function line(past) {
  const most = Math.max(1, ...past);
  const svg = document.createElementNS(SVG, 'svg');
  const shape = document.createElementNS(SVG, 'polyline');
  shape.setAttribute('points', past.map((value, i) => `${(i * 48) / Math.max(1, past.length - 1)},${15 - (value / most) * 14}`).join(' '));
  svg.setAttribute('viewBox', '0 0 48 16');
  svg.setAttribute('class', 'sparkline');
  svg.setAttribute('aria-hidden', 'true');
  svg.append(shape);
  return svg;
}

export class Rising {
  // onPick(question)
  constructor(onPick) {
    this.list = $('#rising');
    this.told = new Map(); // kind of terms -> message
    this.isNew = false; // there are messages that are not displayed yet
    this.list.addEventListener('click', ({ target }) => {
      const { term } = target.closest('button')?.dataset ?? {};
      if (term) onPick(ruleOf(term));
    });
  }

  clear() {
    this.told.clear();
    this.isNew = false;
    this.list.replaceChildren();
    $('#rising-about').textContent = '';
    this.reveal(false);
  }

  // The terms as the server sent them.
  get shown() {
    return [...this.told.values()];
  }

  // The panel is shown when there is something in it.
  reveal(isThere) {
    $('#rising-block').hidden = !isThere;
    $('#what-tab').textContent = isThere ? 'Rising' : 'Languages';
  }

  take(message) {
    this.told.set(message.of, message);
    this.isNew = true;
  }

  // Returns the displayed terms if they are new, otherwise null.
  show() {
    if (!this.isNew) return null;
    this.isNew = false;
    this.reveal(true);
    const terms = mergeTerms([...this.told.values()].map((one) => one.terms));
    const focused = document.activeElement?.dataset?.term;
    this.list.replaceChildren(...terms.map((term) => make('li', {}, make('button.rank', { type: 'button', 'data-term': term.term,
      title: `${term.users} people in ${term.posts} posts; before: ${term.before} people` },
    make('bdi.name', {}, term.term), line(term.past), make('span.part', {}, `${formatNumber(term.users)} · ${formatFactor(term)}`)))));
    if (focused) [...this.list.querySelectorAll('button')].find(({ dataset }) => dataset.term === focused)?.focus({ preventScroll: true });
    const isWhole = [...this.told.values()].every(({ complete }) => complete);
    $('#rising-about').textContent = terms.length === 0 ? 'Nothing is rising.' : isWhole ? '' : 'Incomplete: the log does not reach back two periods yet.';
    return terms;
  }
}
