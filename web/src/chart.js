// chart.js - numbers over the last two minutes, a point a second.

import uPlot from 'uplot';
import { colour } from './theme.js';

const SECONDS = 120;

// `series`: [{ label, colour, fill }, ...], colours by their names in common.css.
export class Chart {
  constructor(root, series, { format = (value) => value.toLocaleString(), height = 150 } = {}) {
    this.root = root;
    this.series = series;
    this.format = format;
    this.height = height;
    this.clear();
    new ResizeObserver(() => this.resize()).observe(root);
    document.addEventListener('themechange', () => this.draw());
    this.draw();
  }

  clear() {
    const now = Math.floor(Date.now() / 1000);
    this.data = [Array.from({ length: SECONDS }, (_, i) => now - SECONDS + 1 + i),
      ...this.series.map(() => new Array(SECONDS).fill(null))];
    this.plot?.setData(this.data);
  }

  // One value for each series; null: not known.
  push(second, values) {
    [second, ...values].forEach((value, i) => {
      this.data[i].push(value);
      this.data[i].shift();
    });
    if (!document.hidden) this.plot.setData(this.data);
  }

  // A theme's colours are read when a plot is made, so it is made anew.
  draw() {
    const line = { stroke: colour('muted'), grid: { stroke: colour('line'), width: 1 },
      ticks: { show: false }, font: `11px ${colour('font')}` };
    this.plot?.destroy();
    this.plot = new uPlot({
      width: Math.max(120, this.root.clientWidth),
      height: this.height,
      legend: { show: false },
      cursor: { show: false },
      padding: [8, 28, 0, 0],
      scales: { y: { range: (_, low, high) => [0, Math.max(4, (high ?? 0) * 1.15)] } },
      axes: [
        { ...line, grid: { show: false }, size: 24, space: 90,
          values: (_, ticks) => ticks.map((tick) => new Date(tick * 1000).toLocaleTimeString(undefined,
            { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })) },
        { ...line, size: 44, space: 34, values: (_, ticks) => ticks.map((tick) => this.format(tick)) },
      ],
      series: [{}, ...this.series.map((one) => ({
        label: one.label,
        stroke: colour(one.colour),
        fill: one.fill ? colour(`${one.colour}-soft`) : undefined,
        width: 1.75,
        points: { show: false },
      }))],
    }, this.data, this.root);
  }

  resize() {
    const width = this.root.clientWidth;
    if (width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: this.height });
  }
}
