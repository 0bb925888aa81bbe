// plots.js - lines over the last 15 minutes, as SVG: sparklines, and plots with a common crosshair.
//
// A time without data is a hatched hole, not zero. Lines also differ in their dashes. They are drawn for each new
// sample, every five seconds.

import { make } from './dom.js';

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 180; // of the drawing; one unit per sample
const HEIGHT = 40;
const SPARK_LEAST = 24;

function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// "M0 40L1 38...", with a new segment after each hole.
export function linePath(values, most) {
  let path = '';
  let isDrawing = false;
  values.forEach((value, i) => {
    if (value === null || value === undefined) {
      isDrawing = false;
      return;
    }
    const y = HEIGHT - 1 - (value / most) * (HEIGHT - 3);
    path += `${isDrawing ? 'L' : 'M'}${i + 0.5} ${y.toFixed(1)}`;
    if (!isDrawing) path += 'h.01'; // a single value is drawn as a dot
    isDrawing = true;
  });
  return path;
}

// The holes after the first known value: [first, count].
export function holes(slots) {
  const found = [];
  const first = slots.findIndex((slot) => !slot.isUnknown);
  for (let i = Math.max(first, 0); i < slots.length; i++) {
    if (!slots[i].isUnknown) continue;
    if (found.length > 0 && found.at(-1)[0] + found.at(-1)[1] === i) found.at(-1)[1]++;
    else found.push([i, 1]);
  }
  return found;
}

// The next round number that is not lower.
export function ceiling(value) {
  if (value <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((times) => times * unit >= value) * unit;
}

function draw(svg, slots, lines, most, marks = []) {
  const shapes = holes(slots).map(([from, count]) => shape('rect', { class: 'hole', x: from, y: 0, width: count, height: HEIGHT }));
  for (const { from, to, level } of marks) {
    if (to - from > 1) shapes.push(shape('rect', { class: `span ${level}`, x: from, y: 0, width: to - from, height: HEIGHT }));
    shapes.push(shape('path', { class: `mark ${level}`, d: `M${from.toFixed(1)} 0V${HEIGHT}` }));
  }
  lines.forEach((values, i) => shapes.push(shape('path', { class: `line line-${i}`, d: linePath(values, most) })));
  svg.replaceChildren(...shapes);
}

function drawing() {
  return shape('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
}

export class Sparkline {
  constructor(root) {
    this.svg = drawing();
    root.append(this.svg);
  }

  // Shows the known values, and at least two minutes.
  show(all, field) {
    const first = all.findIndex((slot) => !slot.isUnknown);
    const slots = all.slice(Math.max(0, Math.min(first, all.length - SPARK_LEAST)));
    this.svg.setAttribute('viewBox', `0 0 ${slots.length} ${HEIGHT}`);
    const values = slots.map((slot) => slot[field] ?? null);
    draw(this.svg, slots, [values], ceiling(Math.max(...values.map((value) => value ?? 0))));
  }
}

// `plots`: [{ title, lines: [{ label, field, of }], format, least }]; `of` converts a value of a sample, `least` is the
// minimum height of a plot. `moment` is a slider for keyboard users.
export class Plots {
  constructor(root, moment, plots, clock) {
    this.root = root;
    this.moment = moment;
    this.clock = clock;
    this.slots = [];
    this.at = null; // index of the slot under the crosshair; null: the last one
    this.plots = plots.map((plot) => {
      const parts = {
        ...plot,
        svg: drawing(),
        top: make('span.top'),
        values: plot.lines.map(() => make('b')),
        cross: make('i.cross', { hidden: '' }),
      };
      const legend = make('span.legend', {}, ...plot.lines.flatMap((line, i) => [
        make('span', {}, plot.lines.length > 1 ? make(`i.key.line-${i}`) : null, plot.lines.length > 1 ? `${line.label} ` : null, parts.values[i])]));
      root.append(make('figure.plot', {}, make('figcaption', {}, make('span', {}, plot.title), legend),
        make('div.area', {}, parts.svg, parts.top, parts.cross)));
      return parts;
    });
    root.addEventListener('pointermove', (event) => this.point(event));
    root.addEventListener('pointerleave', () => this.select(null));
    moment.addEventListener('keydown', (event) => this.press(event));
    moment.addEventListener('blur', () => this.select(null));
  }

  point(event) {
    const area = event.target.closest?.('.plot')?.querySelector('.area');
    if (!area) return;
    const { left, width } = area.getBoundingClientRect();
    this.select(Math.max(0, Math.min(this.slots.length - 1, Math.floor(((event.clientX - left) / width) * this.slots.length))));
  }

  press(event) {
    const last = this.slots.length - 1;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -12, PageUp: 12, Home: -last, End: last }[event.key];
    if (event.key === 'Escape') this.select(null);
    else if (step && last >= 0) {
      event.preventDefault();
      this.select(Math.max(0, Math.min(last, (this.at ?? last) + step)));
    }
  }

  select(at) {
    if (at === this.at) return;
    this.at = at;
    this.read();
  }

  number(line, slot) {
    const value = slot?.[line.field];
    return value === null || value === undefined ? null : (line.of?.(value) ?? value);
  }

  // Shows the values under the crosshair.
  read() {
    const at = this.at ?? this.slots.length - 1;
    const slot = this.slots[at];
    const said = [];
    for (const plot of this.plots) {
      plot.lines.forEach((line, i) => {
        plot.values[i].textContent = plot.format(this.number(line, slot));
        said.push(`${plot.lines.length > 1 ? `${plot.title}, ${line.label}` : plot.title} ${plot.values[i].textContent}`);
      });
      plot.cross.hidden = this.at === null;
      plot.cross.style.left = `${((at + 0.5) / Math.max(1, this.slots.length)) * 100}%`;
    }
    const time = slot ? this.clock(slot.time) : '–';
    this.moment.textContent = this.at === null ? 'now' : time;
    this.moment.setAttribute('aria-valuemax', String(Math.max(0, this.slots.length - 1)));
    this.moment.setAttribute('aria-valuenow', String(Math.max(0, at)));
    this.moment.setAttribute('aria-valuetext', `${time}: ${slot?.isUnknown ? 'no data' : said.join('; ')}`);
  }

  show(slots, incidents) {
    this.slots = slots;
    if (slots.length === 0) return;
    const begin = slots[0].time;
    const unit = (slots.at(-1).time - begin) / (slots.length - 1);
    const place = (time) => Math.max(0, Math.min(slots.length, (time - begin) / unit + 0.5));
    const marks = incidents.filter(({ from, to }) => (to ?? Infinity) >= begin).map(({ from, to, level }) => (
      { from: place(from), to: place(to ?? slots.at(-1).time), level }));
    for (const plot of this.plots) {
      const lines = plot.lines.map((line) => slots.map((slot) => this.number(line, slot)));
      const most = Math.max(plot.least ?? 1, ceiling(Math.max(0, ...lines.flat().map((value) => value ?? 0))));
      draw(plot.svg, slots, lines, most, marks);
      plot.top.textContent = plot.format(most);
    }
    this.read();
  }
}
