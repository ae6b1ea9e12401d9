/** How long {@link until} waits, and what it says when it gives up. */
export interface UntilOptions {
  /** Milliseconds before giving up. Default 5,000. */
  timeoutMs?: number;
  /** What is awaited, as the end of the sentence "gave up waiting for ...". */
  what: string;
  /**
   * How far it has come. Whenever this answers something else, the time begins anew: a busy machine may need long for all of
   * something, but should not stand still.
   */
  progress?: () => unknown;
}

const GAVE_UP = Symbol('gave up');
/** A look that begins late, because this process was put aside, still gets the time for a round trip. */
const LAST_LOOK_MS = 500;

/**
 * Waits until `condition` answers something truthy, and resolves with that answer.
 *
 * The condition is asked at once, then on the next turns of the event loop, then every 5 ms. It may be asynchronous; an
 * answer that never comes counts as a timeout. An error it throws is passed on at once: catch inside what may fail meanwhile.
 *
 * @throws Error naming `what` and the time spent, when `timeoutMs` is over, counted from the last progress.
 */
export async function until<T>(condition: () => T | Promise<T>, options: UntilOptions): Promise<NonNullable<T>> {
  const timeoutMs = options.timeoutMs ?? 5_000;
  let started = performance.now();
  let reached = options.progress?.();
  for (let attempt = 0; ; attempt++) {
    const leftMs = timeoutMs - (performance.now() - started);
    const answer = await within(condition(), Math.max(leftMs, LAST_LOOK_MS));
    if (answer !== GAVE_UP && answer) return answer as NonNullable<T>;
    const now = options.progress?.();
    if (now !== reached) {
      reached = now;
      started = performance.now();
    } else if (answer === GAVE_UP || leftMs <= 0) {
      throw new Error(`gave up waiting for ${options.what} after ${timeoutMs} ms`);
    }
    // The first turns are free: most conditions hold as soon as the bytes already in the socket have been read.
    await (attempt < 3 ? new Promise((next) => setImmediate(next)) : new Promise((next) => setTimeout(next, 5)));
  }
}

async function within<T>(answer: T | Promise<T>, leftMs: number): Promise<T | typeof GAVE_UP> {
  if (!(answer instanceof Promise)) return answer;
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<typeof GAVE_UP>((resolve) => {
    timer = setTimeout(resolve, leftMs, GAVE_UP);
  });
  try {
    return await Promise.race([answer, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
