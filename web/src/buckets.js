// buckets.js - the counts of a question, by the start of their buckets.
//
// A bucket for which no counts have arrived is unknown, not zero.

export const RANGES = {
  '5m': { ms: 300_000, bucketMs: 1000, bucket: '1s', words: '5 min' },
  '15m': { ms: 900_000, bucketMs: 1000, bucket: '1s', words: '15 min' },
  '1h': { ms: 3_600_000, bucketMs: 10_000, bucket: '10s', words: '1 h' },
  '24h': { ms: 86_400_000, bucketMs: 60_000, bucket: '1m', words: '24 h' },
};

// The length of the buckets of groups, so that there are few messages and the range is at most one bucket too long.
export const GROUP_BUCKETS = {
  '5m': { bucketMs: 10_000, bucket: '10s' },
  '15m': { bucketMs: 10_000, bucket: '10s' },
  '1h': { bucketMs: 60_000, bucket: '1m' },
  '24h': { bucketMs: 3_600_000, bucket: '1h' },
};

export class Buckets {
  constructor(bucketMs) {
    this.bucketMs = bucketMs;
    this.told = new Map(); // start, in ms -> message
    this.end = 0;          // of the newest closed bucket
    this.running = null;
  }

  take(message) {
    const start = Date.parse(message.start);
    if (message.partial) {
      this.running = { ...message, start };
      return;
    }
    this.told.set(start, message);
    this.end = Math.max(this.end, start + this.bucketMs);
    if (this.running && this.running.start < this.end) this.running = null;
  }

  forgetBefore(ms) {
    for (const start of this.told.keys()) if (start < ms) this.told.delete(start);
  }

  // null: unknown.
  at(start) {
    const message = this.told.get(start);
    return message && !message.gap ? message : null;
  }

  *starts(from, to) {
    for (let start = Math.floor(from / this.bucketMs) * this.bucketMs; start < to; start += this.bucketMs) yield start;
  }

  // The messages of the buckets in [from, to).
  within(from, to) {
    return Array.from(this.starts(from, to), (start) => this.told.get(start)).filter(Boolean);
  }

  // The end of what is known: that of the current bucket, if something is known of it.
  get reach() {
    return this.running ? this.running.start + this.bucketMs : this.end;
  }

  // What [from, to) brought, of the buckets that are known, also of the current one: { posts, deletes, known, unknown }.
  sum(from, to) {
    const all = { posts: 0, deletes: 0, known: 0, unknown: 0 };
    for (const start of this.starts(from, to)) {
      const bucket = this.at(start) ?? (start === this.running?.start ? this.running : null);
      if (bucket) {
        all.posts += bucket.posts;
        all.deletes += bucket.deletes;
        all.known++;
      } else {
        all.unknown++;
      }
    }
    return all;
  }

  // The unknown parts of [from, to): [{ from, to }, ...].
  holes(from, to) {
    const holes = [];
    for (const start of this.starts(from, to)) {
      if (this.at(start)) continue;
      const last = holes.at(-1);
      if (last?.to === start) last.to += this.bucketMs;
      else holes.push({ from: start, to: start + this.bucketMs });
    }
    return holes;
  }

  // Posts per second in [from, to); null: unknown.
  rate(from, to) {
    const { posts, known } = this.sum(from, to);
    return known > 0 ? posts / known / (this.bucketMs / 1000) : null;
  }

  // Posts per second in the newest closed bucket.
  get perSecond() {
    return this.rate(this.end - this.bucketMs, this.end);
  }

  // The start of the newest bucket with a post; null: none has one.
  get lastPost() {
    let last = null;
    for (const [start, { posts }] of this.told) if (posts > 0 && (last === null || start > last)) last = start;
    return last;
  }

  // Compares the last part of [from, to) with the part before it: 0.18 is 18 % more; null: too few posts.
  change(from, to) {
    const recent = Math.max(this.bucketMs * 3, (to - from) / 15);
    const before = this.sum(from, to - recent);
    const now = this.sum(to - recent, to);
    if (before.posts < 10 || now.known === 0 || before.known === 0) return null;
    return (now.posts / now.known) / (before.posts / before.known) - 1;
  }

  // The sums of the groups in [from, to): [[key, posts], ...], the largest first; `rest` includes `other`.
  groups(from, to) {
    const posts = new Map();
    let rest = 0;
    const add = ({ groups = [], other = 0 }) => {
      for (const group of groups) posts.set(group.key, (posts.get(group.key) ?? 0) + group.posts);
      rest += other;
    };
    for (const start of this.starts(from, to)) {
      const bucket = this.at(start);
      if (bucket) add(bucket);
    }
    if (this.running && this.running.start < to) add(this.running);
    return { groups: [...posts].sort((a, b) => b[1] - a[1]), rest };
  }
}
