import type { Clock } from '../kernel/clock.js';
import type { EchoError } from '../kernel/errors.js';
import { inOwnContext } from './own-context.js';

/** While the server is away, every attempt fails in the same words: they are said again only after so long. */
const SAID_AGAIN_AFTER_MS = 30_000;
const MOST_REMEMBERED = 100;

/** Tells the app of trouble nobody asked about. */
export class FaultReporter {
  private readonly said = new Map<string, number>();

  constructor(
    private readonly onError: (error: EchoError) => void,
    private readonly onReconnected: (awayMs: number) => void,
    private readonly clock: Clock,
  ) {}

  report(error: EchoError): void {
    const words = `${error.code} ${error.message}`;
    const now = this.clock.monotonic();
    if (now - (this.said.get(words) ?? Number.NEGATIVE_INFINITY) < SAID_AGAIN_AFTER_MS) return;
    if (this.said.size >= MOST_REMEMBERED) this.said.clear();
    this.said.set(words, now);
    this.tell(() => this.onError(error));
  }

  /** The trouble is over: the next of its kind is news. */
  over(awayMs: number): void {
    this.said.clear();
    this.tell(() => this.onReconnected(awayMs));
  }

  private tell(call: () => void): void {
    try {
      inOwnContext(call);
    } catch (thrown) {
      queueMicrotask(() => {
        throw thrown; // the app's own fault: seen, but not in the middle of our work
      });
    }
  }
}
