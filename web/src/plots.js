// plots.js - lines over the last 15 minutes, as SVG: a sparkline each, or several with one crosshair.
//
// A time of which nothing is known is a hole with a hatch, never a zero. Lines are told apart by
// dashes, too. Drawn when there is a new sample, so once in five seconds.

import { make } from './dom.js';

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 180; // of the drawing, a unit a sample
const HEIGHT = 40;
const SPARK_LEAST = 24;

function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// "M0 40L1 38..." with a new piece behind each hole.
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
    if (!isDrawing) path += 'h.01'; // a single one is a dot
    isDrawing = true;
  });
  return path;
}

// The places where nothing is known: [first, count], behind the first that is.
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

// A round number that is no less.
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

  // Of what is known, but no shorter than two minutes.
  show(all, field) {
    const first = all.findIndex((slot) => !slot.isUnknown);
    const slots = all.slice(Math.max(0, Math.min(first, all.length - SPARK_LEAST)));
    this.svg.setAttribute('viewBox', `0 0 ${slots.length} ${HEIGHT}`);
    const values = slots.map((slot) => slot[field] ?? null);
    draw(this.svg, slots, [values], ceiling(Math.max(...values.map((value) => value ?? 0))));
  }
}

// `plots`: [{ title, lines: [{ label, field, of }], format, least }]; `of` makes a number of a sample's, `least` is how
// high a plot is at least. `moment`: a slider, for the keys.
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

  // What the crosshair is at.
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
