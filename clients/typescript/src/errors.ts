/** Why the server refused or ended something. */
export interface Reason {
  code?: string;
  /** The message. */
  reason: string;
  /** The HTTP status. */
  status?: number;
  /** The wrong parameter. */
  param?: string;
  /** The position in it, in characters from 0. */
  at?: number;
  /** The position of the stream when it ended. */
  cursor?: string;
  /** Of TooManyTries. */
  tries?: number;
}

/** Codes of temporary refusals on an open connection. */
export const PASSING = ['busy', 'draining', 'no_memory', 'quota', 'rate_limited', 'redis_away', 'timeout'];

/** What ends a stream for good. */
export class SluiceError extends Error {}

/** The server refuses this stream: repeating the request unchanged would not help. `status` is the HTTP status, or 0 if
 * it was refused on an open connection. */
export class Refused extends SluiceError implements Reason {
  constructor(readonly status: number, readonly code: string, readonly reason: string, readonly param?: string, readonly at?: number) {
    super(`${status || 'refused,'} ${code}: ${reason}`);
    this.name = 'Refused';
  }
}

/** The server has ended the stream, and it must not be reopened automatically. `cursor` is its position. */
export class Disconnected extends SluiceError implements Reason {
  constructor(readonly code: string, readonly reason: string, readonly cursor?: string) {
    super(`${code}: ${reason}`);
    this.name = 'Disconnected';
  }
}

/** `maxTries` connections in a row delivered nothing; the last error is its `cause`. */
export class TooManyTries extends SluiceError implements Reason {
  readonly reason: string;

  constructor(readonly tries: number, cause: unknown) {
    super(`${tries} connections in a row brought nothing; at last: ${cause}`, { cause });
    this.name = 'TooManyTries';
    this.reason = String(cause);
  }
}

/** The parts of an error that can be posted from a worker to a tab. */
export function reasonOf(why: unknown): Reason {
  const { code, reason = String(why), status, param, at, cursor, tries } = why as Partial<Reason>;
  return { code, reason, status, param, at, cursor, tries };
}

/** The error again, in the tab. */
export function errorOf({ status, code, reason, param, at, cursor, tries }: Reason): Error {
  if (tries !== undefined) return new TooManyTries(tries, reason);
  if (code === undefined) return new SluiceError(reason);
  return status === undefined ? new Disconnected(code, reason, cursor) : new Refused(status, code, reason, param, at);
}

/** The connection is over, and another one must be opened. Not for users. */
export class Interrupted extends Error {
  /** `reason`: the server's message, if there is one. */
  constructor(why: string, readonly waitMs?: number, readonly needsToken = false, readonly reason?: Reason) {
    super(why);
  }
}

/** `until` is reached. Not for users. */
export class Complete extends Error {}
