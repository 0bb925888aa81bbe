// ids.js - an id contains the time of its creation: (ms since 2026) * 4096 + shard * 64 + n.

const EPOCH_MS = Date.UTC(2026, 0, 1);

export function timeOfId(id) {
  return EPOCH_MS + Math.floor(Number(id) / 4096);
}

export function clockTime(ms) {
  return new Date(ms).toLocaleTimeString(undefined, { hour12: false });
}
