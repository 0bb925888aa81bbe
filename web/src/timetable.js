// timetable.js - the chart as a table, for users who cannot see it or want the numbers.

import { formatRate } from './chips.js';
import { make } from './dom.js';
import { formatNumber } from './format.js';
import { clockTime } from './ids.js';

const ROWS = 30;

// `lines`: as in Timeline, with a title and the `end` of what can be known. A row is a thirtieth of the range.
export function fillTable(root, lines, { from, to }) {
  const step = (to - from) / ROWS;
  const head = make('tr', {}, make('th', { scope: 'col' }, 'From'), ...lines.map(({ letter, title }) => make('th', { scope: 'col' }, `${letter} ${title}`)));
  const rows = Array.from({ length: ROWS }, (_, i) => {
    const start = to - (i + 1) * step;
    return make('tr', {}, make('th', { scope: 'row' }, clockTime(start)), ...lines.map(({ buckets, end }) => {
      const { posts, known, unknown } = buckets.sum(start, Math.min(start + step, end));
      const text = known === 0 ? 'unknown' : `${formatNumber(posts)} (${formatRate(posts / known / (buckets.bucketMs / 1000))})${unknown > 0 ? ', incomplete' : ''}`;
      return make('td', {}, text);
    }));
  });
  root.replaceChildren(make('table', {}, make('thead', {}, head), make('tbody', {}, ...rows)));
}
