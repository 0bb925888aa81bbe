// gaps.js - what the server has said that nobody can tell any more.

import { clockTime, timeOfId } from './ids.js';

const KEPT = 100;

const WHY = {
  retention: { sentence: 'they are no longer kept', words: 'no longer kept' },
  rewound: { sentence: 'they were lost in a failover of Redis', words: 'lost in a failover of Redis' },
  redis: { sentence: 'the log cannot be read', words: 'log cannot be read' },
  unlogged: { sentence: 'they were published without the log', words: 'published without the log' },
  late: { sentence: 'they came late, from a shard that was behind', words: 'late events of a shard' },
};

export function describeGap({ from, to, reason }) {
  const why = WHY[reason]?.sentence ?? reason;
  return Number(from) > 0 ? `Events from ${clockTime(timeOfId(from))} to ${clockTime(timeOfId(to))} are missing: ${why}.`
    : `Events up to ${clockTime(timeOfId(to))} are missing: ${why}.`;
}

export class Gaps {
  constructor() {
    this.told = []; // { reason, begin, end }, in ms
  }

  // False: one of then is known, for the same reason. Each stream is told the part that it misses.
  take({ from, to, reason }) {
    const gap = { reason, begin: Number(from) > 0 ? timeOfId(from) : -Infinity, end: timeOfId(to) };
    const isNew = !this.told.some((one) => one.reason === reason && one.begin <= gap.end && gap.begin <= one.end);
    this.told = [...this.told, gap].slice(-KEPT);
    return isNew;
  }

  // Why something of [begin, end) is missing, in a few words; null: no gap was told of then.
  wordsAt(begin, end) {
    const gap = this.told.findLast((one) => one.begin < end && one.end >= begin);
    return gap ? WHY[gap.reason]?.words ?? gap.reason : null;
  }
}

// A hole of the chart in words: `from` and `to` in ms.
export const describeHole = ({ from, to, words }) => `${clockTime(from)} to ${clockTime(to)} ${words}`;
