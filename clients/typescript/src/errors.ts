/** Why something is not, as the server says it. */
export interface Reason {
  code?: string;
  /** In words. */
  reason: string;
  /** Of HTTP. */
  status?: number;
  /** Which parameter is wrong. */
  param?: string;
  /** Where in it, counted in characters from 0. */
  at?: number;
  /** Where the stream was that has ended. */
  cursor?: string;
}

/** What ends a stream for good. */
export class SluiceError extends Error {}

/** The server does not give this stream: asking again unchanged would not help. `status` is that of HTTP, and 0 where the
 * stream was refused on a connection that is open. */
export class Refused extends SluiceError implements Reason {
  constructor(readonly status: number, readonly code: string, readonly reason: string, readonly param?: string, readonly at?: number) {
    super(`${status || 'refused,'} ${code}: ${reason}`);
    this.name = 'Refused';
  }
}

/** The server has ended the stream, and it is not to be opened again by itself. `cursor` is where it was. */
export class Disconnected extends SluiceError implements Reason {
  constructor(readonly code: string, readonly reason: string, readonly cursor?: string) {
    super(`${code}: ${reason}`);
    this.name = 'Disconnected';
  }
}

/** `maxTries` connections in a row brought nothing; the last reason is its `cause`. */
export class TooManyTries extends SluiceError implements Reason {
  readonly reason: string;

  constructor(tries: number, cause: unknown) {
    super(`${tries} connections in a row brought nothing; at last: ${cause}`, { cause });
    this.name = 'TooManyTries';
    this.reason = this.message;
  }
}

/** The connection is over, and another one is to be made. Not for users. */
export class Interrupted extends Error {
  /** `reason`: what the server has said, if it has. */
  constructor(why: string, readonly waitMs?: number, readonly needsToken = false, readonly reason?: Reason) {
    super(why);
  }
}

/** `until` is reached. Not for users. */
export class Complete extends Error {}
