// health.js - how the server and its workers are, of the numbers of one snapshot.
//
// A worker is ready while it hears the live channels and Redis answers its commands; then, and only
// then, it takes new streams and requests.

import { sum } from './samples.js';

// In a word, for the table of workers.
export function workerState({ sluice_worker_up: up, sluice_worker_subscribed: hears, sluice_worker_ready: ready }, i) {
  if (!up[i]) return 'down';
  if (ready[i]) return 'ready';
  return hears[i] ? 'not ready' : 'Redis away';
}

const failing = (parts) => Object.entries(parts).filter(([, part]) => part.state === 'failing').map(([name]) => name);

// Whether all is well, and a sentence, of a snapshot.
export function health({ metrics, health: parts = {} }) {
  const { sluice_worker_up: up, sluice_worker_subscribed: hears, sluice_worker_ready: ready } = metrics;
  const count = up.length;
  let trouble = '';
  if (sum(up) < count) trouble = `${count - sum(up)} of ${count} workers down`;
  else if (sum(hears) < count) trouble = 'Redis is away';
  else if (failing(parts).length > 0) trouble = `Failing: ${failing(parts).join(', ')}`;
  else if (sum(ready) < count) trouble = `${count - sum(ready)} of ${count} workers not ready`;
  return { isWell: !trouble, text: trouble || 'All well' };
}
