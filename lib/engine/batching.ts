import { assertKnownKeys, assertOption, show } from '../kernel/arguments.js';
import type { Timer } from '../kernel/clock.js';
import { EchoArgumentError, EchoConfigError } from '../kernel/errors.js';
import { callTogether } from './handler.js';
import type { Batching, Job } from './job.js';
import type { Metronome } from './metronome.js';

/** How jobs gather before they are handed over together. */
export interface BatchOptions {
  /** Jobs in a batch at most, 1 to 10,000. Each takes up a slot while it gathers: `concurrency` must be at least that. */
  size: number;
  /** Milliseconds after the first of them came when they are handed over, however few they are. 0: in the next turn. */
  waitMs: number;
}

interface Member {
  readonly job: Job;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}

interface Gathering {
  /** In the order in which they came. */
  readonly members: Map<Job, Member>;
  timer: Timer | undefined;
}

/** On the handler; a symbol of the realm, because two copies of this library can be loaded at once. */
const BATCHING = Symbol.for('nestjs-echomq:batching');

const KNOWN = new Set(['size', 'waitMs']);
const MOST_TOGETHER = 10_000;

/**
 * A handler that gets jobs together: it is called when `size` of them are there, or `waitMs` after the first came. Each is
 * settled on its own all the same. What `handler` answers:
 * - nothing: every job is done, without a result
 * - an array with an item for each job, in their order: its result, or a promise of it; one that rejects fails that job alone
 *
 * Anything else fails every job of the batch, and so does a throw; `Discard`, `Snooze`, `RateLimited` and
 * `WaitForChildren` mean all of them too. A job that is cancelled, times out or loses its lease before the call leaves
 * the batch. `timeoutMs` counts from when a job begins to gather.
 * @throws EchoConfigError for an option that makes no sense
 */
export function batched<OneJob extends Job = Job>(
  options: BatchOptions,
  // biome-ignore lint/suspicious/noExplicitAny: as Handler
  handler: (jobs: OneJob[]) => any,
): (job: OneJob) => Promise<unknown> {
  const { size, waitMs } = checkedBatch(options, 'batched');
  if (typeof handler !== 'function')
    throw new EchoConfigError(`batched() needs a handler function, got ${show(handler)}`);
  const batching: Batching = { size, waitMs, handler: handler as (jobs: Job[]) => unknown };
  const gather = (job: OneJob) => job.batch.reach.gather(job, batching);
  return Object.assign(gather, { [BATCHING]: batching });
}

/** The options, without what else may stand there. @throws EchoConfigError naming the option */
export function checkedBatch(options: BatchOptions, what: string): BatchOptions {
  assertKnownKeys(options, KNOWN, what, EchoConfigError);
  const { size, waitMs } = options;
  assertOption(size, `${what}.size`, 1, MOST_TOGETHER);
  assertOption(waitMs, `${what}.waitMs`, 0);
  return { size, waitMs };
}

/** How large its batches get; 1 of a handler that takes jobs one by one. */
export function batchSizeOf(handler: object): number {
  return (handler as { [BATCHING]?: Batching })[BATCHING]?.size ?? 1;
}

/** The jobs of one consumer that have begun, and wait for others to be handed over together. */
export class Gatherings {
  private readonly open = new Map<Batching, Gathering>();
  private hasty = false;

  /** `slots`: so many jobs at most can gather, so a batch is full with them. */
  constructor(
    private readonly metronome: Metronome,
    private readonly slots: number,
  ) {}

  /** Resolves, or rejects, with what becomes of this job. */
  join(job: Job, batching: Batching): Promise<unknown> {
    if (job.abortedBy !== undefined) return Promise.reject(job.abortedBy);
    return new Promise((resolve, reject) => {
      const { members } = this.open.get(batching) ?? this.begin(batching);
      members.set(job, { job, resolve, reject });
      job.onAbort = (why) => {
        this.leave(batching, job);
        reject(why);
      };
      if (this.hasty || members.size >= Math.min(batching.size, this.slots)) this.handOver(batching);
    });
  }

  /** Nothing more is waited for: what has gathered is handed over, and what still comes is at once. */
  hurry(): void {
    this.hasty = true;
    for (const batching of this.open.keys()) this.handOver(batching);
  }

  private begin(batching: Batching): Gathering {
    const gathering: Gathering = { members: new Map(), timer: undefined };
    this.open.set(batching, gathering);
    if (!this.hasty) gathering.timer = this.metronome.after(batching.waitMs, () => this.handOver(batching));
    return gathering;
  }

  private leave(batching: Batching, job: Job): void {
    const gathering = this.open.get(batching)!;
    gathering.members.delete(job);
    if (gathering.members.size > 0) return;
    gathering.timer?.cancel();
    this.open.delete(batching);
  }

  private handOver(batching: Batching): void {
    const { members, timer } = this.open.get(batching)!;
    this.open.delete(batching);
    timer?.cancel();
    const calledAt = this.metronome.now();
    for (const job of members.keys()) {
      job.onAbort = undefined;
      if (job.timedFrom !== undefined) job.timedFrom = calledAt;
    }
    callFor([...members.values()], batching.handler);
  }
}

async function callFor(members: readonly Member[], handler: Batching['handler']): Promise<void> {
  try {
    const jobs = members.map(({ job }) => job);
    const answer = await callTogether(jobs, () => handler([...jobs])); // what becomes of the array they get is theirs
    const answers = answersOf(answer, jobs.length);
    members.forEach(({ resolve }, i) => {
      resolve(answers?.[i]);
    });
  } catch (error) {
    for (const { reject } of members) reject(error);
  }
}

function answersOf(answer: unknown, count: number): readonly unknown[] | undefined {
  if (answer === undefined || (Array.isArray(answer) && answer.length === count)) return answer;
  const got = Array.isArray(answer) ? `an array of ${answer.length}` : show(answer);
  // Nobody will ask them: without this, one that rejects would end the process.
  if (Array.isArray(answer)) for (const one of answer) Promise.resolve(one).catch(() => undefined);
  const jobs = count === 1 ? '1 job' : `${count} jobs`;
  throw new EchoArgumentError(
    `a handler of batches answers nothing, or an array with an item for each job: for ${jobs} it answered ${got}`,
  );
}
