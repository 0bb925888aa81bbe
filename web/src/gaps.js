// gaps.js - the gaps that the server has reported.

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

  // Returns false if a gap of that time with the same reason is known: each stream reports the part that it misses.
  take({ from, to, reason }) {
    const gap = { reason, begin: Number(from) > 0 ? timeOfId(from) : -Infinity, end: timeOfId(to) };
    const isNew = !this.told.some((one) => one.reason === reason && one.begin <= gap.end && gap.begin <= one.end);
    this.told = [...this.told, gap].slice(-KEPT);
    return isNew;
  }

  // Why data of [begin, end) are missing, in a few words; null: no gap was reported.
  wordsAt(begin, end) {
    const gap = this.told.findLast((one) => one.begin < end && one.end >= begin);
    return gap ? WHY[gap.reason]?.words ?? gap.reason : null;
  }
}

// Describes a hole of the chart; `from` and `to` are in ms.
export const describeHole = ({ from, to, words }) => `${clockTime(from)} to ${clockTime(to)} ${words}`;
