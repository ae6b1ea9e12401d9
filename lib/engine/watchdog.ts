import type { Timer } from '../kernel/clock.js';
import { type EchoError, EchoStoreError } from '../kernel/errors.js';
import type { Metronome } from './metronome.js';

/** A connection, as the watchdog sees it. */
export interface Watched {
  /** Milliseconds in which it has given no sign of life although something was asked. To be looked at now and then. */
  readonly silentMs: number;
  /** Destroys the socket that has been silent for longer than this, so that a new one is made. */
  reset(limitMs: number): void;
}

/** The one that hears of work, when there is one: it is asked for signs of life. */
export interface WatchedSubscriber extends Watched {
  ping(): void;
}

const PING_MS = 2000;
const SUBSCRIBER_SILENCE_MS = 3000;
const COMMAND_SILENCE_MS = 5000;
const SECOND_LOOK_MS = 50;

/** Sees to it that a dead socket is not trusted: it need not have ended. */
export class Watchdog {
  private timer: Timer | undefined;

  constructor(
    private readonly metronome: Metronome,
    private readonly commands: Watched,
    private readonly subscriber: () => WatchedSubscriber | undefined,
    private readonly fault: (error: EchoError) => void,
  ) {}

  /** Idempotent. */
  start(): void {
    this.timer ??= this.metronome.after(PING_MS, () => this.look());
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private look(): void {
    this.timer = this.metronome.after(PING_MS, () => this.look());
    const subscriber = this.subscriber();
    if (isSilent(subscriber, SUBSCRIBER_SILENCE_MS) || isSilent(this.commands, COMMAND_SILENCE_MS)) {
      // After a blocked event loop the answer may lie in the socket, unread: let it be delivered, then look again.
      this.metronome.after(SECOND_LOOK_MS, () => this.reset());
    } else {
      subscriber?.ping();
    }
  }

  private reset(): void {
    this.resetSilent('subscriber', this.subscriber(), SUBSCRIBER_SILENCE_MS);
    this.resetSilent('command', this.commands, COMMAND_SILENCE_MS);
  }

  private resetSilent(what: string, watched: Watched | undefined, limitMs: number): void {
    if (!isSilent(watched, limitMs)) return;
    const message = `the ${what} connection has gone silent; a new one is made`;
    this.fault(new EchoStoreError('ECHO_UNREACHABLE', message, true));
    watched?.reset(limitMs);
  }
}

function isSilent(watched: Watched | undefined, limitMs: number): boolean {
  return watched !== undefined && watched.silentMs > limitMs;
}
