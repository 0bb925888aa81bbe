// format.js - formats numbers and times for people.

const NOTHING = '–';

const formats = new Map();

// toLocaleString() creates such an object for each call, which takes much longer than its use.
function formatWith(Format, options) {
  const key = Format.name + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Format(undefined, options));
  return formats.get(key);
}

export const formatNumber = (value, options = {}) => formatWith(Intl.NumberFormat, options).format(value);
export const formatTime = (ms, options) => formatWith(Intl.DateTimeFormat, options).format(ms);
export const formatPercent = (share, digits) => formatNumber(share, { style: 'percent', maximumFractionDigits: digits });

export function formatCount(value) {
  if (value === null || value === undefined) return NOTHING;
  if (Math.abs(value) >= 1e6) return formatNumber(value, { notation: 'compact', maximumFractionDigits: 2 });
  return formatNumber(value, { maximumFractionDigits: value < 10 && value % 1 !== 0 ? 1 : 0 });
}

export function formatRatio(value) {
  if (value === null) return NOTHING;
  return formatNumber(value, { maximumSignificantDigits: 3 });
}

export function formatBytes(value) {
  if (value === null || value === undefined) return NOTHING;
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  return `${formatNumber(value, { maximumFractionDigits: value < 10 && unit > 0 ? 1 : 0 })} ${units[unit]}`;
}

// A duration, from microseconds to days.
export function formatSeconds(seconds) {
  if (seconds === null || seconds === undefined) return NOTHING;
  if (seconds === Infinity) return '> 10 s';
  const short = (value, unit) => `${formatNumber(value, { maximumSignificantDigits: value < 100 ? 2 : 3 })} ${unit}`;
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
