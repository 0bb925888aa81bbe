// pace.js - so many posts a second, and how many were left out.

const WINDOW_MS = 1000;

export class Pace {
  // onPost(event); onSkipped(n): so many of the last second were left out.
  constructor(perSecond, { onPost, onSkipped }) {
    Object.assign(this, { perSecond, onPost, onSkipped });
    this.window = 0;
    this.shown = 0;
    this.skipped = 0;
  }

  take(event, now = Date.now()) {
    const window = Math.floor(now / WINDOW_MS);
    if (window !== this.window) {
      this.onSkipped(window === this.window + 1 ? this.skipped : 0);
      Object.assign(this, { window, shown: 0, skipped: 0 });
    }
    if (this.shown < this.perSecond) {
      this.shown++;
      this.onPost(event);
    } else {
      this.skipped++;
    }
  }
}
