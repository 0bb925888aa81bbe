/** What ends a stream for good. */
export class SluiceError extends Error {}

/** The server does not give this stream: asking again unchanged would not help. */
export class Refused extends SluiceError {
  constructor(readonly status: number, readonly code: string, message: string, readonly param?: string) {
    super(`${status} ${code}: ${message}`);
    this.name = 'Refused';
  }
}

/** The server has ended the stream, and it is not to be opened again by itself. `cursor` is where it was. */
export class Disconnected extends SluiceError {
  constructor(readonly code: string, reason: string, readonly cursor?: string) {
    super(`${code}: ${reason}`);
    this.name = 'Disconnected';
  }
}

/** `maxTries` connections in a row brought nothing; the last reason is its `cause`. */
export class TooManyTries extends SluiceError {
  constructor(tries: number, cause: unknown) {
    super(`${tries} connections in a row brought nothing; at last: ${cause}`, { cause });
    this.name = 'TooManyTries';
  }
}

/** The connection is over, and another one is to be made. Not for users. */
export class Interrupted extends Error {
  constructor(why: string, readonly waitMs?: number, readonly needsToken = false) {
    super(why);
  }
}

/** `until` is reached. Not for users. */
export class Complete extends Error {}
