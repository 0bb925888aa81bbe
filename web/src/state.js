// state.js - what the page says about its connection: a few words in the bar, and a sentence if something is wrong.

import { sentence } from './fault.js';
import { formatCount, formatSeconds } from './format.js';
import { clockTime } from './ids.js';

const FAR_MS = 120_000;

export const reasonOf = ({ error }) => sentence(error?.reason ?? 'The server does not answer');
// The connection was ended for a reason that is not the token.
export const isEnded = ({ name, error }) => name === 'ended' && ['replaced', 'ended', 'bad_message'].includes(error.code);

// If it is far in the future, the time of day.
function nextTry(until) {
  const ms = until - Date.now();
  return ms > FAR_MS ? `Next try at ${clockTime(until)}` : `Next try in ${Math.max(1, Math.ceil(ms / 1000))} s`;
}

function describeLive({ away, isSilent, held, behind, isExpiring, isReading, tripMs }) {
  if (isSilent) return { name: 'waiting', words: `No counts for ${away} s`, notice: `Connected, but no counts have arrived for ${away} s.` };
  if (behind) {
    const by = formatSeconds(behind.ms / 1000);
    return { name: 'behind', words: `Behind by ${by}`, notice: `The posts are ${by} behind (${formatCount(behind.events)} events): this connection is too slow for them.` };
  }
  if (held) {
    const parts = held === 1 ? '1 part of this page waits' : `${held} parts of this page wait`;
    return { name: 'behind', words: 'Partly live', notice: `Something between this browser and the server lets no WebSocket through. Without one, only five parts can be live: ${parts}.` };
  }
  if (isExpiring) return { name: 'behind', words: 'Token expires soon' };
  if (isReading) return { name: 'live', words: 'Loading the past' };
  return { name: 'live', words: tripMs === undefined ? 'Live' : `Live · ${Math.max(1, Math.round(tripMs))} ms` };
}

// `state`: that of the connection; `until`: when it tries again; `away`: seconds since the newest counts, or null;
// `isSilent`: more should have come; `behind`: { events, ms } of the posts, or null; `isExpiring`: the token;
// `isReading`: the past; `tripMs`: how long the server needs to answer, or undefined.
// Returns { name, words, notice }; the name is also that of a colour. Without a notice nothing is wrong.
export function describeState({ state, until, away, ...live }) {
  const { name } = state;
  if (name === 'live') return describeLive({ away, held: state.held, ...live });
  if (name === 'idle') return { name, words: 'Not connected' };
  if (name === 'connecting') return { name, words: 'Connecting' };
  if (name === 'ended') return isEnded(state) ? { name, words: 'Disconnected', notice: `${reasonOf(state)} Nothing new is shown until you reconnect.` } : { name, words: 'Refused' };
  const silence = away === null || state.error?.code ? '' : ` No answer for ${away} s.`; // unless the server has given a reason
  return { name, words: nextTry(until), notice: `${reasonOf(state)}${silence} ${nextTry(until)}.` };
}
