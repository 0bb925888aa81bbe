// format.js - formats numbers for people.

const NOTHING = '–';

export function formatCount(value) {
  if (value === null || value === undefined) return NOTHING;
  if (Math.abs(value) >= 1e6) return value.toLocaleString(undefined, { notation: 'compact', maximumFractionDigits: 2 });
  return value.toLocaleString(undefined, { maximumFractionDigits: value < 10 && value % 1 !== 0 ? 1 : 0 });
}

export function formatRatio(value) {
  if (value === null) return NOTHING;
  return value.toLocaleString(undefined, { maximumSignificantDigits: 3 });
}

export function formatBytes(value) {
  if (value === null || value === undefined) return NOTHING;
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  return `${value.toLocaleString(undefined, { maximumFractionDigits: value < 10 && unit > 0 ? 1 : 0 })} ${units[unit]}`;
}

// A duration, from microseconds to days.
export function formatSeconds(seconds) {
  if (seconds === null || seconds === undefined) return NOTHING;
  if (seconds === Infinity) return '> 10 s';
  const short = (value, unit) => `${value.toLocaleString(undefined, { maximumSignificantDigits: value < 100 ? 2 : 3 })} ${unit}`;
  if (seconds === 0) return '0 ms';
  if (seconds < 0.001) return short(seconds * 1e6, 'µs');
  if (seconds < 1) return short(seconds * 1000, 'ms');
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

// A duration of which only an upper bound is known.
export function formatBound(seconds) {
  return seconds === null || seconds === Infinity ? formatSeconds(seconds) : `≤ ${formatSeconds(seconds)}`;
}
