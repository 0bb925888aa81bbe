import type { CursorStore } from './session.js';

/** Lasts as long as the program runs. */
export class MemoryStore implements CursorStore {
  readonly #cursors = new Map<string, string>();
  load(key: string) { return this.#cursors.get(key); }
  save(key: string, cursor: string) { this.#cursors.set(key, cursor); }
}

/** In `localStorage`, `sessionStorage`, or anything like them. */
export class StorageStore implements CursorStore {
  constructor(readonly storage: Pick<Storage, 'getItem' | 'setItem'>, readonly prefix = 'sluice:') {}
  load(key: string) { return this.storage.getItem(this.prefix + key); }
  save(key: string, cursor: string) { this.storage.setItem(this.prefix + key, cursor); }
}
