// timeline.js - posts per second of up to four questions over a range of time.
//
// The canvas is drawn when data arrive, not for each frame. Times without data are hatched. Dragging, two fingers, or
// the arrow keys select a part of the time.

import { $ } from './dom.js';
import { formatNumber, formatTime } from './format.js';
import { colour } from './theme.js';

const LEFT = 48;
const RIGHT = 30;
const TOP = 8;
const BOTTOM = 26;
const LOW_BOTTOM = 10; // without the labels of the time
const PADDING = 5; // around labels
const LINE = 18;
const LABEL = 13;
const LOW = 120; // on phones, where there is room for a few labels only
const DELETES = 5; // height of the marks for deletions
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const STEPS_MS = [10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400].map((s) => s * 1000);
const WORTH_MS = 2; // buckets; a shorter drag is a click

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const oneDay = 86_400_000;

export function formatAxis(value) {
  return formatNumber(value, value >= 1000 ? { notation: 'compact' } : { maximumSignificantDigits: 2 });
}

// Ticks of 1, 2 or 5 times a power of ten; the last one is at or above `most`.
export function niceTicks(most, count = 4) {
  const raw = most / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((times) => times * power >= raw * 0.999) * power;
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, i) => i * step);
}

// The places of labels that are at `ys`, moved apart by `gap` where there is room for that within [low, high].
export function spread(ys, gap, low, high) {
  const room = Math.min(gap, (high - low) / Math.max(1, ys.length - 1));
  const order = ys.map((_, i) => i).sort((i, k) => ys[i] - ys[k]);
  const places = ys.map((y) => clamp(y, low, high));
  order.forEach((i, k) => { if (k > 0) places[i] = Math.max(places[i], places[order[k - 1]] + room); });
  order.reverse().forEach((i, k) => { places[i] = Math.min(places[i], k > 0 ? places[order[k - 1]] - room : high); });
  return places;
}

export class Timeline {
  // onBrush(range): { from, to } in ms, or null; onPoint(ms): where the pointer is, or null; onTap(): a click.
  constructor(root, { onBrush, onPoint, onTap }) {
    this.root = root;
    this.onBrush = onBrush;
    this.onPoint = onPoint;
    this.onTap = onTap;
    this.canvas = $('canvas', root);
    this.picture = null;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(root);
    document.addEventListener('themechange', () => this.draw());
  }

  resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    const { clientWidth: width, clientHeight: height } = this.root;
    if (width === 0 || height === 0) return;
    Object.assign(this, { width, height, ratio });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.draw();
  }

  // `picture`: { from, to, bucketMs, lines: [{ slot, letter, buckets }], focus, isLog, brush, holes: [{ from, to, words }] }.
  show(picture) {
    this.picture = picture;
    this.draw();
  }

  x(ms) {
    const { from, to } = this.picture;
    return LEFT + ((ms - from) / (to - from)) * (this.width - LEFT - RIGHT);
  }

  ms(x) {
    const { from, to } = this.picture;
    return clamp(from + ((x - LEFT) / (this.width - LEFT - RIGHT)) * (to - from), from, to);
  }

  get isLow() {
    return this.height < LOW;
  }

  get base() {
    return this.height - (this.isLow ? LOW_BOTTOM : BOTTOM);
  }

  y(value) {
    const share = this.picture.isLog ? Math.log10(1 + value) / Math.log10(1 + this.top) : value / this.top;
    return this.base - share * (this.base - TOP);
  }

  draw() {
    if (!this.picture || !this.width) return;
    const context = this.canvas.getContext('2d', { alpha: false }); // is drawn faster, as nothing shines through
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = colour('surface');
    context.fillRect(0, 0, this.width, this.height);
    context.font = `12px ${colour('font')}`;
    const lines = this.picture.lines.map((line) => ({ ...line, values: this.values(line.buckets) }));
    let most = 0;
    for (const { values } of lines) for (const value of values) if (value > most) most = value;
    const ticks = this.ticks(Math.max(most * 1.08, 4 / Math.max(1, this.picture.bucketMs / 1000)));
    this.top = ticks.at(-1);
    this.drawAxes(context, ticks);
    this.drawHoles(context);
    for (const line of lines) if (line.slot !== this.picture.focus) this.drawLine(context, line);
    const focused = lines.find(({ slot }) => slot === this.picture.focus);
    if (focused) {
      this.drawLine(context, focused, true);
      this.drawDeletes(context, focused);
    }
    this.drawLabels(context, lines);
    this.drawBrush(context);
  }

  ticks(most) {
    if (!this.picture.isLog) return niceTicks(most, this.isLow ? 2 : 4);
    const ticks = [0];
    for (let tick = 1; ticks.at(-1) < most; tick *= 10) ticks.push(tick);
    return ticks;
  }

  // Posts per second by bucket; null: unknown.
  values(buckets) {
    const { from, to, bucketMs } = this.picture;
    return Array.from(buckets.starts(from, to), (start) => {
      const bucket = buckets.at(start);
      return bucket ? (bucket.posts * 1000) / bucketMs : null;
    });
  }

  drawAxes(context, ticks) {
    const { from, to } = this.picture;
    context.strokeStyle = colour('line');
    context.fillStyle = colour('muted');
    context.lineWidth = 1;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const tick of this.isLow ? [0, ticks.at(-1)] : ticks) {
      const y = Math.round(this.y(tick)) + 0.5;
      context.beginPath();
      context.moveTo(LEFT, y);
      context.lineTo(this.width - RIGHT, y);
      context.stroke();
      context.fillText(formatAxis(tick), LEFT - 8, y);
    }
    if (this.isLow) return;
    const room = Math.max(2, Math.floor((this.width - LEFT - RIGHT) / 85));
    const step = STEPS_MS.find((one) => (to - from) / one <= room) ?? STEPS_MS.at(-1);
    const zone = new Date(to).getTimezoneOffset() * 60_000;
    context.textAlign = 'center';
    context.textBaseline = 'top';
    const style = { hour: '2-digit', minute: '2-digit', hour12: false, ...(step < 60_000 ? { second: '2-digit' } : {}),
      ...(to - from > oneDay ? { day: 'numeric' } : {}) };
    for (let ms = Math.ceil((from - zone) / step) * step + zone; ms <= to; ms += step) {
      context.fillText(formatTime(ms, style), this.x(ms), this.base + DELETES + 5);
    }
  }

  drawHoles(context) {
    if (this.picture.holes.length === 0) return;
    const tile = new OffscreenCanvas(8, 8);
    const pen = tile.getContext('2d');
    pen.strokeStyle = colour('edge');
    pen.lineWidth = 1.25;
    pen.beginPath();
    for (const shift of [-8, 0, 8]) {
      pen.moveTo(shift, 8);
      pen.lineTo(shift + 8, 0);
    }
    pen.stroke();
    context.fillStyle = context.createPattern(tile, 'repeat');
    for (const { from, to } of this.picture.holes) {
      const x = this.x(from);
      context.fillRect(x, TOP, Math.max(2, this.x(to) - x), this.base - TOP);
    }
    let taken = 0; // the right end of the last label
    for (const hole of this.picture.holes) taken = this.writeHole(context, hole, taken);
  }

  // Writes the label into the hole, or next to it if it is narrow, without overlapping another label.
  writeHole(context, { from, to, words }, taken) {
    const width = context.measureText(words).width + 2 * PADDING;
    const [left, right] = [this.x(from), this.x(to)];
    const beside = right + width < this.width - RIGHT ? right + 2 : left - width - 2;
    const x = right - left >= width ? (left + right - width) / 2 : beside;
    if (x < Math.max(LEFT, taken)) return taken;
    context.fillStyle = colour('surface');
    context.fillRect(x, TOP + 4, width, LINE);
    context.fillStyle = colour('soft');
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    context.fillText(words, x + PADDING, TOP + 4 + LINE / 2);
    return x + width;
  }

  drawLine(context, { slot, letter, buckets, values }, isFocus = false) {
    const { from, bucketMs } = this.picture;
    const first = Math.floor(from / bucketMs) * bucketMs;
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, this.width - LEFT - RIGHT + 2, this.height);
    context.clip();
    context.strokeStyle = colour(`line-${letter}`);
    context.lineWidth = isFocus ? 2 : 1.5;
    context.lineJoin = 'round';
    context.setLineDash(DASHES[slot]);
    context.beginPath();
    let isDown = false;
    values.forEach((value, i) => {
      if (value === null) {
        isDown = false;
        return;
      }
      const x = this.x(first + (i + 0.5) * bucketMs);
      const y = this.y(value);
      if (isDown) context.lineTo(x, y);
      else context.moveTo(x, y);
      if (!isDown && (values[i + 1] ?? null) === null) context.lineTo(x + 1.5, y); // a single value
      isDown = true;
    });
    context.stroke();
    const last = values.findLastIndex((value) => value !== null);
    if (buckets.running && last >= 0) {
      const share = buckets.running.posts / Math.max(1, (this.picture.now - buckets.running.start) / 1000);
      context.setLineDash([2, 3]);
      context.beginPath();
      context.moveTo(this.x(first + (last + 0.5) * bucketMs), this.y(values[last]));
      context.lineTo(this.x(this.picture.now), this.y(share));
      context.stroke();
    }
    context.restore();
  }

  // The letter of each line at its end.
  drawLabels(context, lines) {
    const labels = lines.map(({ letter, values }) => ({ letter, value: values.findLast((value) => value !== null) }))
      .filter(({ value }) => value !== undefined);
    const places = spread(labels.map(({ value }) => this.y(value)), LABEL, TOP + 6, this.base - 6);
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    labels.forEach(({ letter }, i) => {
      context.fillStyle = colour(`line-${letter}`);
      context.fillText(letter, this.width - RIGHT + 8, places[i]);
    });
  }

  drawDeletes(context, { buckets }) {
    const { from, to, bucketMs } = this.picture;
    const width = Math.max(1.5, this.x(from + bucketMs) - this.x(from) - 0.5);
    context.fillStyle = colour('bad');
    for (const start of buckets.starts(from, to)) {
      if (buckets.at(start)?.deletes > 0 && start >= from) context.fillRect(this.x(start), this.base + 2, width, DELETES);
    }
  }

  drawBrush(context) {
    const brush = this.drag ?? this.picture.brush;
    if (!brush) return;
    const [x0, x1] = [brush.from, brush.to].map((ms) => clamp(this.x(ms), LEFT, this.width - RIGHT));
    context.fillStyle = colour('accent-soft');
    context.fillRect(x0, TOP, x1 - x0, this.base - TOP);
    context.strokeStyle = colour('accent');
    context.lineWidth = 1.5;
    context.setLineDash([]);
    context.strokeRect(x0, TOP, x1 - x0, this.base - TOP);
  }

  // --- pointer and keys ---

  range(one, other) {
    const { bucketMs } = this.picture;
    return { from: Math.floor(Math.min(one, other) / bucketMs) * bucketMs, to: Math.ceil(Math.max(one, other) / bucketMs) * bucketMs };
  }

  listen() {
    const at = ({ clientX }) => this.ms(clientX - this.canvas.getBoundingClientRect().left);
    const held = new Map(); // pointer -> { from, to }: the times where it went down, and where it is
    const select = () => {
      const [one, other = { to: one.from }] = held.values();
      this.drag = this.range(one.to, other.to);
      this.draw();
    };
    const release = () => {
      held.clear();
      this.drag = null;
      this.draw();
    };
    this.canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || !this.picture) return;
      this.canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, { from: at(event), to: at(event) });
      if (held.size > 1) select();
    });
    this.canvas.addEventListener('pointermove', (event) => {
      if (!this.picture) return;
      if (held.has(event.pointerId)) {
        held.get(event.pointerId).to = at(event);
        select();
      }
      this.onPoint(at(event));
    });
    this.canvas.addEventListener('pointerleave', () => this.onPoint(null));
    this.canvas.addEventListener('pointerup', ({ pointerId }) => {
      if (!held.has(pointerId)) return;
      const { drag } = this;
      release();
      if (drag && drag.to - drag.from >= WORTH_MS * this.picture.bucketMs) this.onBrush(drag);
      else this.onTap();
    });
    this.canvas.addEventListener('pointercancel', release);
    this.canvas.addEventListener('keydown', (event) => this.key(event));
  }

  // The arrow keys move the selection, with Shift its end; without a selection they select a fifteenth of the range.
  // Enter is a click.
  key(event) {
    if (event.key === 'Enter') this.onTap();
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way || !this.picture || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const { from, to, bucketMs, brush } = this.picture;
    const step = Math.max(bucketMs, (to - from) / 60);
    const next = brush ? { from: brush.from + (event.shiftKey ? 0 : way * step), to: brush.to + way * step }
      : { from: to - (to - from) / 15 - 5000, to: to - 5000 };
    if (next.to - next.from < bucketMs || next.from < from || next.to > to) return;
    this.onBrush(this.range(next.from, next.to - 1));
  }
}
