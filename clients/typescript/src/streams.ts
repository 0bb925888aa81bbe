import type { Message } from './messages.js';
import type { CursorStore, Parameters, StreamName } from './session.js';

export interface StreamOptions {
  store?: CursorStore;
  /** The name under which the store stores the cursor; by default, the path with its parameters. */
  name?: string;
  signal?: AbortSignal;
}

/** The streams of a server, by name. */
export abstract class Streams<StreamOpts = StreamOptions> {
  filter(parameters: Parameters, options?: StreamOpts) { return this.open('filter', parameters, options); }
  sample(parameters: Parameters = {}, options?: StreamOpts) { return this.open('sample', parameters, options); }
  firehose(parameters: Parameters = {}, options?: StreamOpts) { return this.open('firehose', parameters, options); }
  home(parameters: Parameters = {}, options?: StreamOpts) { return this.open('home', parameters, options); }
  counts(parameters: Parameters = {}, options?: StreamOpts) { return this.open('counts', parameters, options); }
  trends(parameters: Parameters = {}, options?: StreamOpts) { return this.open('trends', parameters, options); }

  /** Ends all streams. */
  abstract close(): void;

  protected abstract open(stream: StreamName, parameters: Parameters, options?: StreamOpts): AsyncGenerator<Message, void>;
}
