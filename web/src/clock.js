// clock.js - the time of the server, as its counts tell it.
//
// Buckets are closed by the clock of Redis, and this computer's may be another. While buckets of one
// second come a second apart, they are live, and say what time it is there.

const LIVE_AFTER = 3; // buckets in a row that came a second apart

export class ServerClock {
  constructor() {
    this.offset = 0; // ms, of the server's clock against this one
    this.before = 0;
    this.steady = 0;
  }

  // A bucket has come, which ended at `end`.
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
