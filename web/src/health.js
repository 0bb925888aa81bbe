// health.js - how a worker is, of the numbers of one snapshot.
//
// A worker is ready while it hears the live channels and Redis answers its commands; then, and only
// then, it takes new streams and requests.

// In a word, for the table of workers.
export function workerState({ sluice_worker_up: up, sluice_worker_subscribed: hears, sluice_worker_ready: ready }, i) {
  if (!up[i]) return 'down';
  if (ready[i]) return 'ready';
  return hears[i] ? 'not ready' : 'Redis away';
}
