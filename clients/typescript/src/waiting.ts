// What one part of the package gives another when it comes, and pauses.

/** Items that are pushed are read, in order, until it ends. For one reader. */
export class Queue<T> {
  #items: T[] = [];
  #isOver = false;
  #error: unknown;
  #wake = () => {};

  push(item: T): void {
    if (!this.#isOver) this.#items.push(item);
    this.#wake();
  }

  /** First everything that was pushed is read; then the error, if there is one, is thrown. */
  end(error?: unknown): void {
    if (!this.#isOver) this.#error = error;
    this.#isOver = true;
    this.#wake();
  }

  /** Nothing more is read. */
  stop(): void {
    this.#items = [];
    this.end();
  }

  async *read(): AsyncGenerator<T, void> {
    for (;;) {
      while (this.#items.length > 0) yield this.#items.shift()!;
      if (this.#isOver) break;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    if (this.#error !== undefined) throw this.#error;
  }
}

/** Read ahead, whether its reader waits for it or for something else. */
export async function* eager<T>(source: AsyncGenerator<T, void>, whenOver: (why?: unknown) => void): AsyncGenerator<T, void> {
  const queue = new Queue<T>();
  const read = async () => {
    for await (const item of source) queue.push(item);
  };
  const over = (why?: unknown) => {
    queue.end(why);
    whenOver(why);
  };
  void read().then(over, over);
  yield* queue.read();
}

/** `ms` undefined: until `signal` ends it. */
export function pause(ms: number | undefined, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = ms === undefined ? undefined : setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
  });
}
