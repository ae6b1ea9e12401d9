import type { EchoError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { Executor } from '../wire/executor.js';
import { asEchoError } from '../wire/faults.js';
import { progress } from '../wire/transitions/index.js';
import type { Job, Reported } from './job.js';
import type { Metronome } from './metronome.js';
import { portions } from './portions.js';

export interface ProgressHost {
  /** Something is to be sent at the end of this turn. */
  mark(): void;
  fault(error: EchoError): void;
}

interface Entry {
  readonly job: Job;
  readonly reported: Reported;
  readonly value: string | Buffer;
}

/** One call per job and so long. */
const APART_MS = 200;
const PAUSE_AFTER_FAULT_MS = 500;
const DONE = Promise.resolve();

/**
 * What the running jobs of a queue say of how far they are: the latest value of each, at most one in 200 ms, and what is said in
 * one turn in one call. What is held back when a job ends goes out before its settlement.
 */
export class ProgressReports {
  private due = new Map<Job, Reported>();
  /** Answers when what is due has been taken. */
  private gathering: { readonly sent: Promise<void>; done(): void } | undefined;
  /** The server knows the script: by its hash, what is sent stays in order. */
  private known = false;

  constructor(
    private readonly executor: Executor,
    private readonly keys: QueueKeys,
    private readonly metronome: Metronome,
    private readonly host: ProgressHost,
  ) {}

  /** Resolves when the server has answered; at once where the value is held back, or the job is not ours any more. */
  report(job: Job, value: string | Buffer): Promise<void> {
    if (job.finished || job.lost) return DONE;
    job.reported ??= { value: undefined, notBefore: Number.NEGATIVE_INFINITY, timer: undefined, sending: false };
    const { reported } = job;
    reported.value = value;
    if (!this.due.has(job)) {
      if (reported.sending) return DONE;
      const wait = reported.notBefore - this.metronome.now();
      if (wait > 0) {
        this.hold(job, reported, wait);
        return DONE;
      }
      this.add(job, reported);
    }
    return this.gathering!.sent;
  }

  /** The job is about to be settled: what it has reported goes out before. */
  last(job: Job): void {
    const { reported } = job;
    if (reported === undefined) return;
    reported.timer?.cancel();
    if (job.lost) reported.value = undefined;
    else if (reported.value !== undefined && !this.due.has(job)) this.add(job, reported);
  }

  /** Another connection, and perhaps another server. */
  reconnected(): void {
    this.known = false;
  }

  flush(): void {
    const { due, gathering } = this;
    if (gathering === undefined) return;
    this.due = new Map();
    this.gathering = undefined;
    const entries: Entry[] = [];
    const notBefore = this.metronome.now() + APART_MS;
    for (const [job, reported] of due) {
      const { value } = reported;
      reported.value = undefined;
      if (value === undefined || job.lost) continue;
      reported.notBefore = notBefore;
      reported.sending = true;
      entries.push({ job, reported, value });
    }
    const calls = portions(entries, ({ value }) => value.length).map((portion) => this.send(portion));
    Promise.all(calls).then(gathering.done);
  }

  private async send(entries: readonly Entry[]): Promise<void> {
    const again = await this.failed(entries);
    for (const { job, reported, value } of entries) {
      reported.sending = false;
      if (job.finished || job.lost) continue;
      if (again) reported.value ??= value; // unless there is a later one
      if (reported.value !== undefined)
        this.hold(job, reported, again ? PAUSE_AFTER_FAULT_MS : reported.notBefore - this.metronome.now());
    }
  }

  /** Is it worth another try? Of a job that is refused nothing need be said: who lost it is told so otherwise. */
  private async failed(entries: readonly Entry[]): Promise<boolean> {
    const items = entries.map(({ job, value }) => ({ id: job.id, token: job.token, value }));
    try {
      if (this.known) await this.executor.run(progress, this.keys, items);
      else await this.executor.runInFull(progress, this.keys, items);
      this.known = true;
      return false;
    } catch (error) {
      const fault = asEchoError(error);
      if (fault.code === 'ECHO_STATE') return false; // closed
      this.host.fault(fault);
      return fault.retryable;
    }
  }

  private hold(job: Job, reported: Reported, ms: number): void {
    reported.timer ??= this.metronome.after(Math.max(0, ms), () => {
      reported.timer = undefined;
      if (!job.finished && !job.lost && reported.value !== undefined && !this.due.has(job)) this.add(job, reported);
    });
  }

  private add(job: Job, reported: Reported): void {
    this.due.set(job, reported);
    if (this.gathering === undefined) {
      let done = () => {};
      const sent = new Promise<void>((resolve) => {
        done = resolve;
      });
      this.gathering = { sent, done };
    }
    this.host.mark();
  }
}
