// clock.js - estimates the server's time from its counts.
//
// Buckets are closed by the clock of Redis, which may differ from this computer's. When buckets of one second arrive
// about one second apart, they are live, and their ends are the server's time.

const LIVE_AFTER = 3; // consecutive buckets that arrived about a second apart

export class ServerClock {
  constructor() {
    this.offset = 0; // ms; the server's clock minus this one
    this.before = 0;
    this.steady = 0;
  }

  // A bucket has arrived that ended at `end`.
  heard(end, bucketMs, now = Date.now()) {
    const isApart = bucketMs === 1000 && now - this.before > 500 && now - this.before < 2000;
    this.before = now;
    this.steady = isApart ? this.steady + 1 : 0;
    if (end - now > this.offset || this.steady >= LIVE_AFTER) this.offset = end - now;
  }

  now(now = Date.now()) {
    return now + this.offset;
  }
}
