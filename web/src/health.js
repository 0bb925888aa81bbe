// health.js - the state of a worker, from the metrics of one snapshot.
//
// A worker is ready while it receives the live channels and Redis answers its commands; only then it accepts new
// streams and requests.

// One word for the table of workers.
export function workerState({ sluice_worker_up: up, sluice_worker_subscribed: hears, sluice_worker_ready: ready }, i) {
  if (!up[i]) return 'down';
  if (ready[i]) return 'ready';
  return hears[i] ? 'not ready' : 'Redis away';
}
