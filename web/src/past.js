// past.js - merges the server's responses with samples and incidents.
//
// Each response contains what is new or has changed; it replaces older entries for the same time.

const SAMPLES = 180;
const INCIDENTS = 100;
const OVERLAP_MS = 2000; // between two requests, for changes during a response

export const SAMPLE_MS = 5000;

export class Past {
  constructor() {
    this.clear();
  }

  clear() {
    this.samples = []; // oldest first
    this.incidents = []; // newest first
    this.asked = 0;
    this.started = null;
  }

  // The time from which to request.
  get since() {
    return this.asked ? this.asked - OVERLAP_MS : null;
  }

  // Returns true if there is something new.
  take({ now_ms: now, metrics, samples = [], incidents = [] }) {
    const started = metrics.sluice_start_time_seconds;
    if (this.started !== null && this.started !== started) this.clear(); // sluiced was restarted
    const isNew = this.asked === 0 || samples.length > 0 || incidents.length > 0;
    this.started = started;
    this.asked = now;
    const byTime = new Map(this.samples.map((sample) => [sample.time, sample]));
    for (const sample of samples) byTime.set(Date.parse(sample.at), { ...sample, time: Date.parse(sample.at) });
    this.samples = [...byTime.values()].sort((a, b) => a.time - b.time).slice(-SAMPLES);
    const byNumber = new Map(this.incidents.map((one) => [one.number, one]));
    for (const one of incidents) {
      byNumber.set(one.number, { ...one, from: Date.parse(one.begin), to: one.end ? Date.parse(one.end) : null });
    }
    this.incidents = [...byNumber.values()].sort((a, b) => b.from - a.from || b.number - a.number).slice(0, INCIDENTS);
    return isNew;
  }

  // A slot for each five seconds up to the last sample; null: no sample.
  slots() {
    if (this.samples.length === 0) return [];
    const end = this.samples.at(-1).time;
    const byTime = new Map(this.samples.map((sample) => [sample.time, sample]));
    return Array.from({ length: SAMPLES }, (_, i) => {
      const time = end - (SAMPLES - 1 - i) * SAMPLE_MS;
      return byTime.get(time) ?? { time, isUnknown: true };
    });
  }
}
