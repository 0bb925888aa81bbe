// Made of docs/asyncapi.yaml by scripts/types.mjs.

export type Message =
  | PostEvent
  | DeleteEvent
  | FollowEvent
  | UnfollowEvent
  | UserEvent
  | ReducedEvent
  | Gap
  | Warning
  | Skipped
  | Counts
  | Trends;
/**
 * As the producer wrote it; the social core writes strings.
 */
export type EventId = string | number;
/**
 * An id; while a shard is behind, followed by the ids up to which some shards are complete. Opaque to clients.
 *
 */
export type Position = string;
export type Time = string;
/**
 * A number below 2^53 as a string. Ids grow with time; the id of an event is a cursor.
 */
export type Id = string;
export type Warning =
  | {
      type: 'warning';
      code: 'behind';
      /**
       * How many events the client is behind.
       */
      events: number;
      ms: number;
    }
  | {
      type: 'warning';
      code: FilterWarningCode;
      message: string;
      param: string;
      at?: number;
    }
  | {
      type: 'warning';
      /**
       * The filter has a login that no user has.
       */
      code: 'unknown_user';
      message: string;
      param: string;
      /**
       * The id of the subscription, on `/v1/stream`.
       */
      id?: RuleId;
    }
  | {
      type: 'warning';
      /**
       * The stream ends with its token, unless the token is replaced.
       */
      code: 'token_expiring';
      message: string;
      /**
       * The time until then.
       */
      ms: number;
    };
export type FilterWarningCode = 'operator_word' | 'box_at_sea' | 'unknown_language';
export type RuleId = string;

export interface PostEvent {
  id: EventId;
  type: 'post';
  /**
   * The event comes after events with greater ids.
   */
  late?: true;
  /**
   * In an event that is late, or was published without the log: the cursor of the client.
   */
  cursor?: Position;
  at?: Time;
  post: Post;
  [k: string]: unknown;
}
/**
 * As the social core writes it. Other members, from producers that publish without the core, are passed on
 * unchanged.
 *
 */
export interface Post {
  id: EventId;
  user: User;
  text: string;
  /**
   * A BCP 47 tag.
   */
  lang?: string;
  created_at?: Time;
  geo?: {
    lon: number;
    lat: number;
    [k: string]: unknown;
  };
  place?: {
    name?: string;
    country?: string;
    /**
     * @minItems 4
     * @maxItems 4
     */
    bbox?: [number, number, number, number];
    [k: string]: unknown;
  };
  reply_to?: Reference;
  repost_of?: Reference;
  quote_of?: Reference;
  urls?: unknown[];
  media?: unknown[];
  source?: string;
  audience?: 'public' | 'followers' | 'only' | 'except';
  [k: string]: unknown;
}
export interface User {
  id: string;
  login?: string;
  name?: string;
  [k: string]: unknown;
}
/**
 * For a post that is not public, only `post`.
 */
export interface Reference {
  post: string;
  user?: string;
  login?: string;
  [k: string]: unknown;
}
export interface DeleteEvent {
  id: EventId;
  type: 'delete';
  /**
   * The event comes after events with greater ids.
   */
  late?: true;
  /**
   * In an event that is late, or was published without the log: the cursor of the client.
   */
  cursor?: Position;
  at?: Time;
  post: {
    id: EventId;
    user: {
      id: string;
    };
    state: 'deleted';
  };
  [k: string]: unknown;
}
export interface FollowEvent {
  id: EventId;
  type: 'follow';
  /**
   * The event comes after events with greater ids.
   */
  late?: true;
  /**
   * In an event that is late, or was published without the log: the cursor of the client.
   */
  cursor?: Position;
  at?: Time;
  user: User;
  target: User;
  [k: string]: unknown;
}
export interface UnfollowEvent {
  id: EventId;
  type: 'unfollow';
  /**
   * The event comes after events with greater ids.
   */
  late?: true;
  /**
   * In an event that is late, or was published without the log: the cursor of the client.
   */
  cursor?: Position;
  at?: Time;
  user: User;
  target: User;
  [k: string]: unknown;
}
export interface UserEvent {
  /**
   * For a new user: the user's id.
   */
  id: EventId;
  type: 'user';
  /**
   * The event comes after events with greater ids.
   */
  late?: true;
  /**
   * In an event that is late, or was published without the log: the cursor of the client.
   */
  cursor?: Position;
  at?: Time;
  /**
   * The user after the change.
   */
  user: User;
  /**
   * `created` or `updated`; other producers may use other words.
   */
  change?: string;
  /**
   * With `updated`: what is different. GET /v1/users/{user} has the profile (`bio`, `avatar`, `fields`).
   */
  members?: string[];
  [k: string]: unknown;
}
/**
 * The members present are those of the whole event; at least one is missing.
 */
export interface ReducedEvent {
  id: EventId;
  type: 'post' | 'delete' | 'follow' | 'unfollow' | 'user';
  /**
   * The event comes after events with greater ids.
   */
  late?: true;
  /**
   * In an event that is late, or was published without the log: the cursor of the client.
   */
  cursor?: Position;
  at?: Time;
  /**
   * In a deletion it has its `id`.
   */
  post?: {
    [k: string]: unknown;
  };
  user?: {
    [k: string]: unknown;
  };
  target?: {
    [k: string]: unknown;
  };
  change?: string;
  [k: string]: unknown;
}
export interface Gap {
  type: 'gap';
  /**
   * Exclusive.
   */
  from: Id;
  /**
   * Inclusive.
   */
  to: Id;
  /**
   * In this order: the events were trimmed from the log; a failover of Redis lost them; the log cannot be read there; they
   * were published without the log and are no longer in memory; they came late, below the plain
   * id from which the client resumed.
   *
   */
  reason: 'retention' | 'rewound' | 'redis' | 'unlogged' | 'late';
  /**
   * With more than one shard, the shard that the gap is about; the others are complete.
   */
  shard?: number;
}
export interface Skipped {
  type: 'skipped';
  /**
   * The cursor; with `max_rate` the last id of the window.
   */
  id: Position;
  /**
   * The number of posts left out.
   */
  events: number;
  /**
   * Present if the message is about a single post that belongs to no window any more.
   */
  reason?: 'late' | 'unlogged';
}
export interface Counts {
  type: 'counts';
  /**
   * The last id before `end`; the cursor. The current bucket has none.
   */
  id?: Id;
  start: Time;
  /**
   * Exclusive.
   */
  end: Time;
  posts: number;
  deletes: number;
  /**
   * The number of different authors of posts; beyond 256 with a standard error of 1.6 %.
   */
  users: number;
  /**
   * With `by`, the groups, the largest first.
   *
   * @maxItems 1000
   */
  groups?: {
    key: string;
    posts?: number;
    /**
     * With `by=type`, instead of `posts`.
     */
    events?: number;
  }[];
  /**
   * With `by`, what is not in any of the groups.
   */
  other?: number;
  /**
   * How many times this bucket was sent before and has changed since.
   */
  revision?: number;
  /**
   * Events of the bucket are missing; a `gap` message says which.
   */
  gap?: true;
  /**
   * The bucket is the current one.
   */
  partial?: true;
}
export interface Trends {
  type: 'trends';
  /**
   * The cursor.
   */
  id: Id;
  /**
   * The beginning of the window.
   */
  start: Time;
  /**
   * Exclusive.
   */
  end: Time;
  of: 'hashtags' | 'words' | 'links' | 'users' | 'cashtags';
  /**
   * Whether the whole window and the one before it have been seen.
   */
  complete: boolean;
  /**
   * The maximum error of `posts`; `users` and `before` may be too small by up to this; terms that are not listed have at most this many posts.
   */
  error: number;
  /**
   * The terms, the highest score first.
   *
   * @maxItems 100
   */
  terms: {
    term: string;
    posts: number;
    users: number;
    /**
     * The number of users in the window before.
     */
    before: number;
    /**
     * How many standard deviations `users` is above the expected value, to a tenth.
     */
    score: number;
    /**
     * The number of users in each twelfth of the window, the oldest first.
     *
     * @minItems 12
     * @maxItems 12
     */
    past: [number, number, number, number, number, number, number, number, number, number, number, number];
  }[];
  /**
   * How many times this message was sent before and has changed since.
   */
  revision?: number;
  /**
   * Events of the window are missing.
   */
  gap?: true;
}
