// estimate.js - estimates what a question matches while it is typed.

import { $, make } from './dom.js';
import { formatBytes, formatCount, formatPercent } from './format.js';
import { formatRate } from './chips.js';
import { sentence } from './fault.js';
import { requestOf } from './question.js';
import { getToken } from './token.js';

const SINCE = '-10m';
const CALM_MS = 250; // without a key press
const SAID = ['nothing_matches', 'part_brings_nothing', 'wide_rule']; // by the numbers; the page has a limited rate

// The body for POST /v1/filters/estimate; null: there is no estimate for this question.
export function estimateBody(question) {
  const { stream, parameters } = requestOf(question);
  if (stream === 'filter') return { filter: parameters, since: SINCE };
  if (stream === 'firehose') return { filter: { firehose: true, ...parameters }, since: SINCE };
  return null;
}

// Resolves to { estimate } or { error }; null: the server returned neither.
export async function estimate(question, signal) {
  const body = estimateBody(question);
  if (!body || !getToken()) return null;
  try {
    const response = await fetch('/v1/filters/estimate', { method: 'POST', signal, cache: 'no-store', credentials: 'omit',
      headers: { Authorization: `Bearer ${getToken()}`, 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
    const answer = await response.json();
    if (response.ok) return { estimate: answer };
    return response.status === 400 || response.status === 413 ? { error: answer.error } : null;
  } catch {
    return null; // aborted, or the server is not reachable
  }
}

// The estimate in words: '≈ 41/s · 4.1% of all · 2.6 kB/s', and the count of each part.
export function describe({ per_second: rate, share, bytes_per_second: bytes, events, parts = [] }) {
  const all = formatPercent(share, 1);
  const line = events === 0 ? 'None in the last 10 min' : `≈ ${formatRate(rate)} · ${all} of all · ${formatBytes(bytes)}/s`;
  return { line, parts: parts.length > 1 ? parts.map(({ value, events: count }) => ({ text: `${value} ${formatCount(count)}`, isNone: count === 0 })) : [] };
}

// The items without which the question would match something: [{ value, without }, ...], the largest number first.
export const obstacles = ({ events, parts = [] }) => (events > 0 ? [] : parts.filter(({ without }) => without > 0).sort((a, b) => b.without - a.without));

export class Estimating {
  // onError(error, text): the text is not a valid question yet; onExamples(events): examples of what it matches.
  constructor({ onError, onGood, onExamples }) {
    this.onExamples = onExamples;
    this.line = $('#estimate');
    this.onError = onError;
    this.onGood = onGood;
    this.timer = null;
  }

  // The text of the field has changed.
  typed(text) {
    this.clear();
    if (text.trim() === '') this.onGood();
    else this.timer = setTimeout(() => this.ask(text), CALM_MS);
  }

  clear() {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.abort = null;
    this.line.hidden = true;
    this.onExamples([]);
  }

  async ask(text) {
    const abort = new AbortController();
    this.abort = abort;
    const answer = await estimate(text, abort.signal);
    if (abort.signal.aborted) return;
    if (answer?.error) {
      this.onError(answer.error, text);
      return;
    }
    this.onGood();
    if (!answer) return;
    const { examples = [] } = answer.estimate;
    const warnings = (answer.estimate.warnings ?? []).filter(({ code }) => !SAID.includes(code));
    const { line, parts } = describe(answer.estimate);
    this.line.replaceChildren(line, ...parts.map(({ text: part, isNone }) => make(isNone ? 'span.part.is-none' : 'span.part', {}, isNone ? `${part} (!)` : part)),
      ...warnings.map(({ message }) => make('span.warning', {}, sentence(message))));
    this.line.hidden = false;
    this.onExamples(examples);
  }
}
