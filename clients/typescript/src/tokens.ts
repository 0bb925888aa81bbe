// The token of a client: a text, or a function that returns a new one.
import { Disconnected } from './errors.js';
import { tokenIsFresh } from './session.js';

export type Token = string | (() => string | Promise<string>);

export class Tokens {
  #held: string | undefined;
  #asking: Promise<string> | undefined;

  constructor(readonly source: Token) {}

  async fresh(): Promise<string> {
    if (typeof this.source === 'string') return this.source;
    if (tokenIsFresh(this.#held)) return this.#held;
    this.#asking ??= Promise.resolve(this.source()).finally(() => (this.#asking = undefined));
    return (this.#held = await this.#asking);
  }

  /** Returns a token to replace `used`; undefined: there is none now. */
  async next(used: string): Promise<string | undefined> {
    if (typeof this.source === 'string') return undefined;
    if (this.#held === used) this.#held = undefined;
    try {
      return await this.fresh();
    } catch {
      return undefined;
    }
  }

  /** It was refused as expired. */
  drop(why: Error, cursor: string | undefined): void {
    if (typeof this.source === 'string')
      throw new Disconnected('token_expired', `and there is no other token (${why.message})`, cursor);
    this.#held = undefined;
  }
}
