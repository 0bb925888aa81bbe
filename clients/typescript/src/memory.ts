// What a stream has delivered so far, for a tab that comes later: as much as a stream opened now would deliver.
import type { Message } from './messages.js';
import type { Parameters } from './session.js';

const EVENTS = 60, BUCKETS = 10_000;
const UNITS_MS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** How far back `since=-15m` reaches; without it the beginning is fixed. */
function reachOf(since: Parameters[string]): number {
  const [, number, unit] = /^-(\d+)([smhd])$/.exec(String(since)) ?? [];
  return number ? Number(number) * UNITS_MS[unit!]! : Infinity;
}

export class Memory {
  readonly #reach: number;
  readonly #counts = new Map<string, Message>(); // by their start
  #running: Message | undefined;
  #events: Message[] = [];
  readonly #last = new Map<string, Message>();   // of other types, and trends by kind

  constructor(parameters: Parameters) {
    this.#reach = reachOf(parameters.since);
  }

  take(message: any): void {
    if (message.type === 'counts') {
      this.#takeCounts(message);
    } else if (message.type === 'delete') {
      this.#events = this.#events.filter((one: any) => one.post?.id !== message.post?.id);
    } else if (message.code === 'behind') {
      // true of that moment only
    } else if (message.id === undefined || ['trends', 'skipped'].includes(message.type)) {
      this.#last.set(`${message.type} ${message.of}`, message);
    } else {
      this.#events = [...this.#events, message].slice(-EVENTS);
    }
  }

  all(): Message[] {
    return [...this.#counts.values(), ...(this.#running ? [this.#running] : []), ...this.#events, ...this.#last.values()];
  }

  #takeCounts(message: any): void {
    this.#running = message.partial ? message : undefined;
    if (message.partial) return;
    this.#counts.set(message.start, message);
    const oldest = Date.parse(message.start) - this.#reach;
    for (const start of this.#counts.keys()) {
      if (Date.parse(start) >= oldest && this.#counts.size <= BUCKETS) break;
      this.#counts.delete(start);
    }
  }
}
