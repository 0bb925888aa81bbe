// ids.js - an id contains the time of its creation: (ms since 2026) * 4096 + shard * 64 + n.

import { formatTime } from './format.js';

const EPOCH_MS = Date.UTC(2026, 0, 1);

export function timeOfId(id) {
  return EPOCH_MS + Math.floor(Number(id) / 4096);
}

export function clockTime(ms) {
  return formatTime(ms, { hour: 'numeric', minute: 'numeric', second: 'numeric', hour12: false });
}
