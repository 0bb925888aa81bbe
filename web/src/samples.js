// samples.js - looks at /status.json, the last some of them, and what two of them say together.

const KEPT_MS = 60_000;

// A family is a number, an array (of workers) or an object (by labels): all of it together.
export function sum(family) {
  if (family === undefined || family === null) return null;
  if (typeof family === 'number') return family;
  return Object.values(family).reduce((total, value) => total + value, 0);
}

export class Samples {
  constructor() {
    this.all = [];
  }

  push(sample) {
    // Counters that have become smaller: it is another sluiced now.
    const before = this.latest;
    if (before && sum(sample.metrics.sluice_events_received_total) < sum(before.metrics.sluice_events_received_total)) {
      this.all = [];
    }
    this.all.push(sample);
    while (this.all[0].now_ms < sample.now_ms - KEPT_MS) this.all.shift();
  }

  get latest() {
    return this.all.at(-1);
  }

  // The look that lies `seconds` back, or the oldest.
  before(seconds) {
    const from = this.latest.now_ms - seconds * 1000;
    return this.all.findLast((sample) => sample.now_ms <= from) ?? this.all[0];
  }

  value(name) {
    return sum(this.latest.metrics[name]);
  }

  increase(name, seconds) {
    const now = sum(this.latest.metrics[name]);
    const then = sum(this.before(seconds).metrics[name]);
    return now === null || then === null ? null : now - then;
  }

  // A second; null: not known yet.
  rate(name, seconds) {
    const passed = (this.latest.now_ms - this.before(seconds).now_ms) / 1000;
    const increase = this.increase(name, seconds);
    return passed > 0 && increase !== null ? increase / passed : null;
  }

  // How much of one for each of the other; null: there was none of the other.
  ratio(name, of, seconds) {
    const many = this.increase(of, seconds);
    return many > 0 ? this.increase(name, seconds) / many : null;
  }

  // Seconds below which the share `q` of the last ones took, by the bound of the bucket.
  quantile(name, q, seconds) {
    const now = this.latest.histograms[name];
    const then = this.before(seconds).histograms[name];
    if (!now || !then) return null;
    const counts = now.buckets.map((count, i) => count - then.buckets[i]);
    const total = sum(counts);
    if (total === 0) return null;
    let seen = 0;
    const bucket = counts.findIndex((count) => (seen += count) >= q * total);
    return this.latest.bounds[bucket] ?? Infinity;
  }
}
