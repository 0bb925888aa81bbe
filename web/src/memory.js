// memory.js - what a stream has told so far, for a tab that opens later.

const POSTS = 60;
const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

// How far back `since=-15m` reaches; Infinity: it begins at a fixed time.
function reachOf(path) {
  const [, number, unit] = /[?&]since=-(\d+)([smhd])(&|$)/.exec(path) ?? [];
  return number ? number * UNITS_MS[unit] : Infinity;
}

export class Memory {
  constructor(path) {
    this.reach = reachOf(path);
    this.counts = new Map(); // start -> message
    this.running = null;
    this.posts = [];
    this.last = new Map();   // of trends: what of -> message
  }

  take(message) {
    if (message.type === 'counts') this.takeCounts(message);
    else if (message.type === 'post') this.posts = [...this.posts, message].slice(-POSTS);
    else if (message.type === 'delete') this.posts = this.posts.filter(({ post }) => post.id !== message.post.id);
    else if (message.type === 'trends') this.last.set(message.of, message);
    else if (message.type === 'skipped' || message.type === 'gap' || message.type === 'disconnect') this.last.set(message.type, message);
    else if (message.type === 'refused') this.last.set('refused', message);
  }

  takeCounts(message) {
    if (message.partial) {
      this.running = message;
      return;
    }
    this.running = null;
    this.counts.set(message.start, message);
    const oldest = Date.parse(message.start) - this.reach;
    for (const start of this.counts.keys()) {
      if (Date.parse(start) >= oldest) break;
      this.counts.delete(start);
    }
  }

  all() {
    return [...this.counts.values(), ...(this.running ? [this.running] : []), ...this.posts, ...this.last.values()];
  }
}
