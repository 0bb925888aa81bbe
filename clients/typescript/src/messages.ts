// Made of docs/asyncapi.yaml by scripts/types.mjs.

export type Message =
  PostEvent | DeleteEvent | FollowEvent | UnfollowEvent | ReducedEvent | Gap | Warning | Skipped | Counts | Trends;
/**
 * As the producer wrote it; the social core writes text.
 */
export type EventId = string | number;
/**
 * An id; while a shard is behind, with the ids up to which some shards are complete. Opaque to clients.
 *
 */
export type Position = string;
export type Time = string;
/**
 * A number below 2^53 as text, which grows with time; of an event, the cursor.
 */
export type Id = string;
export type Warning =
  | {
      type: 'warning';
      code: 'behind';
      /**
       * So many behind the head.
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
       * Nobody has a login that the filter names.
       */
      code: 'unknown_user';
      message: string;
      param: string;
      /**
       * Of the subscription, on `/v1/stream`.
       */
      id?: RuleId;
    };
export type FilterWarningCode = 'operator_word' | 'box_at_sea' | 'unknown_language';
export type RuleId = string;

export interface PostEvent {
  id: EventId;
  type: 'post';
  /**
   * It comes behind events with greater ids.
   */
  late?: true;
  /**
   * Of a late event; where its receiver stands.
   */
  cursor?: Position;
  at?: Time;
  post: Post;
  [k: string]: unknown;
}
/**
 * As the social core writes it. Other members, of producers that publish by themselves, are passed on
 * as they are.
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
 * Of a post that is not public `post` alone.
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
   * It comes behind events with greater ids.
   */
  late?: true;
  /**
   * Of a late event; where its receiver stands.
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
   * It comes behind events with greater ids.
   */
  late?: true;
  /**
   * Of a late event; where its receiver stands.
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
   * It comes behind events with greater ids.
   */
  late?: true;
  /**
   * Of a late event; where its receiver stands.
   */
  cursor?: Position;
  at?: Time;
  user: User;
  target: User;
  [k: string]: unknown;
}
/**
 * What is there is as in the whole event; something that this has is missing.
 */
export interface ReducedEvent {
  id: EventId;
  type: 'post' | 'delete' | 'follow' | 'unfollow';
  /**
   * It comes behind events with greater ids.
   */
  late?: true;
  /**
   * Of a late event; where its receiver stands.
   */
  cursor?: Position;
  at?: Time;
  /**
   * A deletion's has its `id`.
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
   * They have left the log; a failover of Redis has lost them; the log cannot be read there; they
   * were published without the log and are not in memory any more; they came late, below the plain
   * id that the client came with.
   *
   */
  reason: 'retention' | 'rewound' | 'redis' | 'unlogged' | 'late';
  /**
   * With more than one shard; of the others nothing is missing there.
   */
  shard?: number;
}
export interface Skipped {
  type: 'skipped';
  /**
   * The cursor; the last of the window.
   */
  id: Id;
  /**
   * Posts.
   */
  events: number;
  /**
   * Not of the window but by itself.
   */
  reason?: 'late' | 'unlogged';
}
export interface Counts {
  type: 'counts';
  /**
   * The last before `end`; the cursor. A bucket that is running has none.
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
   * Different authors of posts; beyond 256 with a standard error of 1.6 %.
   */
  users: number;
  /**
   * With `by`; the largest first.
   *
   * @maxItems 1000
   */
  groups?: {
    key: string;
    posts?: number;
    /**
     * In place of `posts`
     */
    events?: number;
  }[];
  /**
   * With `by`; what the groups do not name.
   */
  other?: number;
  /**
   * It was told before
   */
  revision?: number;
  /**
   * Something of it is missing
   */
  gap?: true;
  /**
   * It is running.
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
   * Of the window.
   */
  start: Time;
  /**
   * Exclusive.
   */
  end: Time;
  of: 'hashtags' | 'words' | 'links' | 'users' | 'cashtags';
  /**
   * The whole window, and the one before it, have been seen.
   */
  complete: boolean;
  /**
   * By how much `posts` may be wrong; other terms have no more.
   */
  error: number;
  /**
   * The greatest score first.
   *
   * @maxItems 100
   */
  terms: {
    term: string;
    posts: number;
    users: number;
    /**
     * The users of the window before.
     */
    before: number;
    /**
     * Standard deviations above what was expected, to a tenth.
     */
    score: number;
    /**
     * Users of each twelfth of the window, the oldest first.
     *
     * @minItems 12
     * @maxItems 12
     */
    past: [number, number, number, number, number, number, number, number, number, number, number, number];
  }[];
  /**
   * It was told before, and comes again, for so many times.
   */
  revision?: number;
  /**
   * Something of the window is missing.
   */
  gap?: true;
}
