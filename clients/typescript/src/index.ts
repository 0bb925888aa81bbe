export { Client, type ClientOptions, type StreamOptions } from './client.js';
export type { WebSocketClass } from './connections.js';
export { Disconnected, Refused, SluiceError, TooManyTries } from './errors.js';
export type * from './messages.js';
export type { CursorStore, Options, Parameters, StreamName } from './session.js';
export { MemoryStore, StorageStore } from './stores.js';
export { SharedClient } from './shared.js';
export type { Token } from './tokens.js';
