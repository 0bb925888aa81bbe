// samples.js - the last responses of /status.json, and the rates between them.

const KEPT_MS = 60_000;

// A family of metrics is a number, an array (by worker) or an object (by label); returns the sum.
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
    // If counters have decreased, sluiced was restarted.
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

  // The sample of `seconds` ago, or the oldest.
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

  // Per second; null: unknown yet.
  rate(name, seconds) {
    const passed = (this.latest.now_ms - this.before(seconds).now_ms) / 1000;
    const increase = this.increase(name, seconds);
    return passed > 0 && increase !== null ? increase / passed : null;
  }

  // The quotient of two increases; null: the second is 0.
  ratio(name, of, seconds) {
    const many = this.increase(of, seconds);
    return many > 0 ? this.increase(name, seconds) / many : null;
  }

  // The quantile `q` of the last `seconds` in seconds: the upper bound of its bucket.
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
