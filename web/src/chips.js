// chips.js - the questions as chips, each with its colour, rate, sparkline and change.

import { $, make, put } from './dom.js';
import { formatNumber, formatPercent } from './format.js';
import { titleOf } from './question.js';
import { LETTERS } from './view.js';

const POINTS = 24;
const SVG = 'http://www.w3.org/2000/svg';

export function formatRate(perSecond) {
  if (perSecond === null) return '–';
  if (perSecond === 0) return '0/s';
  if (perSecond >= 1) return `${formatNumber(Math.round(perSecond))}/s`;
  if (perSecond * 60 >= 1) return `${Math.round(perSecond * 60)}/min`;
  return `${Math.max(1, Math.round(perSecond * 3600))}/h`;
}

export function formatChange(change) {
  if (change === null || !Number.isFinite(change)) return '';
  if (change >= 4) return `× ${formatNumber(change + 1, { maximumSignificantDigits: 2 })}`;
  return `${change < 0 ? '−' : '+'}${formatPercent(Math.abs(change), 0)}`;
}

// The rates of POINTS parts of [from, to) as points of a line in a box of 48 by 16; '' if all are unknown.
export function sparkline(buckets, from, to) {
  const step = (to - from) / POINTS;
  const rates = Array.from({ length: POINTS }, (_, i) => buckets.rate(from + i * step, from + (i + 1) * step));
  const most = Math.max(...rates.map((rate) => rate ?? 0));
  return rates.map((rate, i) => (rate === null ? '' : `${(i * 48) / (POINTS - 1)},${15 - (most > 0 ? (rate / most) * 14 : 0)}`))
    .filter(Boolean).join(' ');
}

export class Chips {
  constructor({ onFocus, onRemove }) {
    this.list = $('#chips');
    this.onFocus = onFocus;
    this.onRemove = onRemove;
    this.chips = new Map(); // slot -> { item, question }
  }

  show(view, numbersOf) {
    for (const [slot, { item, question }] of this.chips) {
      if (view.questions[slot] !== question) {
        item.remove();
        this.chips.delete(slot);
      }
    }
    for (const slot of view.slots) {
      const chip = this.chips.get(slot) ?? this.make(slot, view.questions[slot]);
      this.fill(chip, numbersOf(slot), slot === view.focus);
      $('.remove', chip.item).hidden = view.slots.length < 2;
    }
    const items = view.slots.map((slot) => this.chips.get(slot).item);
    if (items.some((item, i) => item !== this.list.children[i])) this.list.replaceChildren(...items);
  }

  make(slot, question) {
    const line = document.createElementNS(SVG, 'polyline');
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('viewBox', '0 0 48 16');
    svg.setAttribute('class', 'sparkline');
    svg.setAttribute('aria-hidden', 'true');
    svg.append(line);
    const name = make('button.name', { type: 'button', title: question || null }, make('span.swatch', { 'aria-hidden': 'true' }, LETTERS[slot]),
      make('bdi', {}, titleOf(question)), make('b.rate'), svg, make('span.change'));
    const remove = make('button.remove', { type: 'button', 'aria-label': `Remove ${titleOf(question)}` }, '×');
    const item = make(`li.chip.line-${LETTERS[slot]}`, {}, name, remove);
    name.addEventListener('click', () => this.onFocus(slot));
    remove.addEventListener('click', () => this.onRemove(slot));
    const chip = { item, question, line };
    this.chips.set(slot, chip);
    return chip;
  }

  fill({ item, line }, { perSecond, change, points, isOld }, isFocus) {
    put($('.rate', item), formatRate(perSecond));
    put($('.change', item), formatChange(change));
    if (line.getAttribute('points') !== points) line.setAttribute('points', points);
    item.classList.toggle('is-old', isOld);
    $('.name', item).setAttribute('aria-pressed', String(isFocus));
  }
}
