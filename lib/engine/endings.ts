import type { EchoError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { Outcome, RetryOutcome } from '../kernel/outcome.js';
import type { Claims } from './claims.js';
import { type DeadJob, deadHere, type Where } from './consumer-events.js';
import type { ConsumerSettings } from './consumer-options.js';
import { encodedResult } from './encoding.js';
import type { Holder, HolderHost } from './holder.js';
import type { Job } from './job.js';
import { recordArg } from './recording.js';
import { type Settlement, Settler } from './settler.js';
import type { Slots } from './slots.js';
import { verdictOn } from './verdict.js';

/** What an end concerns in its consumer. */
export interface EndingsParts {
  readonly holder: Pick<Holder, 'lose' | 'letGo'>;
  readonly slots: Pick<Slots, 'leave' | 'start'>;
  readonly claims: Pick<Claims, 'leaves' | 'arrivedBack'>;
  /** The job is over here, and its slot free. */
  ended(job: Job): void;
  // What is told, as in ConsumerEvents.
  completed(job: Job, result: unknown): void;
  failed(job: Job, error: unknown, outcome: Where): void;
  dead(job: DeadJob): void;
  unhandled(job: Job): void;
  fault(error: EchoError): void;
}

/**
 * What the end of a run means: which settlement the job gets, and, once the server has answered that, what is told of
 * it. A job ends here once; what comes later of its handler is dropped.
 */
export class Endings {
  private readonly settler: Settler;

  constructor(
    private readonly host: HolderHost,
    keys: QueueKeys,
    private readonly settings: Readonly<ConsumerSettings>,
    private readonly parts: EndingsParts,
  ) {
    this.settler = new Settler(host.executor, keys, host.metronome, recordArg(settings.record), {
      settled: (job, outcome, settlement) => this.settled(job, outcome, settlement),
      fault: (error) => parts.fault(error),
    });
  }

  succeed(job: Job, value: unknown): void {
    let result: string | Buffer;
    try {
      result = encodedResult(value, this.host.codec, this.host.maxPayloadBytes);
    } catch (error) {
      this.fail(job, error);
      return;
    }
    if (!this.end(job)) return;
    const keepMs = job.opts?.keepMs ?? this.settings.keepMs;
    // Nobody asks for a result that is not there; for any other somebody may: a parent, or who waits for the job.
    this.settler.complete(job, value, keepMs > 0 || value !== undefined ? result : '', keepMs);
    this.parts.slots.start();
  }

  fail(job: Job, error: unknown): void {
    if (!this.end(job)) return;
    // Stopped because the lease was lost: the attempt belongs to whoever has the job now.
    if (!job.lost) this.settleFailed(job, error);
    this.parts.slots.start();
  }

  /** Its lease is over before it could start. Not settled: the reap, or whoever has claimed it since, sees to it. */
  expire(job: Job): void {
    if (!job.lost) this.parts.holder.lose(job, 'it was over before a slot was free');
    this.end(job);
  }

  /** Unfinished, uncharged. */
  giveBack(job: Job): void {
    if (!this.end(job)) return;
    if (!job.started) this.parts.claims.leaves();
    this.settler.release(job, '');
  }

  /** Sends the settlements of this turn. */
  flush(): void {
    this.settler.flush();
  }

  /** Resolves when every settlement has been answered. */
  idle(): Promise<void> {
    return this.settler.idle();
  }

  /** False when the job was settled, timed out or given back before: its result is dropped. */
  private end(job: Job): boolean {
    if (job.finished) return false;
    job.finished = true;
    this.parts.holder.letGo(job);
    this.parts.slots.leave(job);
    this.parts.ended(job);
    return true;
  }

  private settleFailed(job: Job, error: unknown): void {
    const verdict = verdictOn(error, job, this.settings, (fault) => this.parts.fault(fault));
    if (verdict.kind === 'retry') {
      this.settler.retry(job, error, verdict.delayMs, verdict.maxAttempts, verdict.text);
    } else if (verdict.kind === 'wait') {
      this.settler.wait(job);
    } else {
      this.settler.release(job, verdict.delay);
      if (verdict.unhandled) this.parts.unhandled(job);
    }
  }

  private settled(job: Job, outcome: Outcome | RetryOutcome, settlement: Settlement): void {
    if (!job.started) this.parts.claims.arrivedBack();
    switch (outcome) {
      case 'ok':
        if (settlement.kind === 'complete') this.parts.completed(job, settlement.value);
        break;
      case 'scheduled':
      case 'pending':
      case 'dead':
        if (settlement.kind === 'retry') this.failed(job, settlement, outcome);
        break;
      default:
        if (!job.lost) this.parts.holder.lose(job, `its settlement was refused as ${outcome}`);
    }
  }

  private failed(job: Job, { error, text }: Settlement & { kind: 'retry' }, outcome: Where): void {
    this.parts.failed(job, error, outcome);
    if (outcome === 'dead') this.parts.dead(deadHere(job, text));
  }
}
