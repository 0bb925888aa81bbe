// ranks.js - a list of shares, largest first. Each row is a button that adds its key to the question.

import { make, put } from './dom.js';
import { formatCount, formatPercent } from './format.js';

const MOST = 8;

const formatShare = (share) => formatPercent(share, share < 0.1 ? 1 : 0);

export class Ranks {
  // nameOf(key); onPick(key, isBeside: with Shift); `unknown`: the key for unknown values, which cannot be picked.
  constructor(list, { nameOf, onPick, unknown }) {
    Object.assign(this, { list, nameOf, unknown });
    this.rows = new Map();
    list.addEventListener('click', (event) => {
      const { key } = event.target.closest('button')?.dataset ?? {};
      if (key) onPick(key, event.shiftKey);
    });
  }

  // `groups`: [[key, posts], ...], largest first. Rows are reused, so that the focus does not move.
  show(groups, rest) {
    const total = groups.reduce((all, [, posts]) => all + posts, rest);
    const known = groups.filter(([key]) => key !== this.unknown).slice(0, MOST);
    const nothing = groups.find(([key]) => key === this.unknown);
    const shown = nothing && groups.length > 0 ? [...known, nothing] : known;
    const most = Math.max(1, ...known.map(([, posts]) => posts));
    const rows = shown.map(([key, posts]) => this.row(key, posts, posts / Math.max(1, total), posts / most));
    const isSame = rows.length === this.list.childElementCount && rows.every((row, i) => row === this.list.children[i]);
    if (!isSame) {
      const focused = document.activeElement;
      this.list.replaceChildren(...rows);
      if (this.list.contains(focused)) focused.focus({ preventScroll: true });
    }
  }

  row(key, posts, share, bar) {
    let row = this.rows.get(key);
    if (!row) {
      const isKnown = key !== this.unknown;
      row = make('li', {}, make(isKnown ? 'button.rank' : 'p.rank', isKnown ? { type: 'button', 'data-key': key } : {},
        make('span.name', {}, this.nameOf(key)), make('meter.bar', { min: '0', max: '1', 'aria-hidden': 'true' }), make('span.part')));
      this.rows.set(key, row);
    }
    const [line] = row.children;
    line.children[1].value = key === this.unknown ? 0 : bar;
    put(line.children[2], `${formatCount(posts)} · ${formatShare(share)}`);
    return row;
  }
}
