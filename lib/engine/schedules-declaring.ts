import { randomBytes } from 'node:crypto';
import { assertKnownKeys, show } from '../kernel/arguments.js';
import type { Codec } from '../kernel/codec.js';
import { EchoArgumentError, type EchoError, EchoStateError } from '../kernel/errors.js';
import { base62 } from '../kernel/id.js';
import { assertScheduleKey, type Keyspace, type QueueKeys } from '../kernel/keyspace.js';
import { type Queue, queueName } from '../kernel/queue.js';
import { slotAfter } from '../kernel/schedule-slots.js';
import { checkedTimes, type FullTimes, rulesText, type ScheduleTimes, timesText } from '../kernel/schedule-spec.js';
import type { Executor } from '../wire/executor.js';
import { asEchoError } from '../wire/faults.js';
import type { Transition } from '../wire/transition.js';
import * as wire from '../wire/transitions/index.js';
import { Drafts } from './drafts.js';
import type { DataArguments, NameFor } from './job-types.js';
import type { LaneRules } from './lane-rules.js';
import type { Metronome } from './metronome.js';
import type { Minting } from './minting.js';
import {
  checkedOptions,
  type DeclareAnswer,
  type DeclaredSchedule,
  dateOf,
  ORIGIN,
  type ScheduleDeclaration,
  type ScheduleOptions,
} from './schedule-calls.js';
import { checkData } from './validation.js';

export interface SchedulesParts {
  executor: Executor;
  keyspace: Keyspace;
  codec: Codec;
  minting: Minting;
  maxPayloadBytes: number;
  requestTimeoutMs: number;
  metronome: Metronome;
  laneRules: LaneRules;
  fault(error: EchoError): void;
}

/** What {@link SchedulesDeclaring.keepDeclared} was given. */
interface Kept {
  readonly queue: string | Queue;
  readonly declarations: readonly ScheduleDeclaration[];
  done(answer: DeclareAnswer): Promise<void>;
}

/** A declaration that was looked at, as the wire wants it. */
interface Prepared {
  readonly key: string;
  readonly times: FullTimes;
  readonly call: Pick<wire.SchedulePut, 'spec' | 'rules' | 'payload' | 'fields'>;
}

export const MOST_PER_PAGE = 1000;
const PAGE_BYTES = 8_000_000;
const DECLARATION = new Set(['key', 'times', 'name', 'data', 'options']);
const TRY_AGAIN_MS = 3000;

/**
 * What of {@link Schedules} is about declaring them: it remembers what this process has declared, tries again until the
 * server takes it, and knows what is left over.
 */
export abstract class SchedulesDeclaring {
  private readonly drafts: Drafts;
  /** The keys that this process has declared, by queue. */
  private readonly declared = new Map<string, ReadonlySet<string>>();
  /** What is being declared until the server takes it, and again when it has lost it, by queue. */
  private readonly kept = new Map<string, Kept>();
  private stopped = false;

  /** @internal */
  constructor(
    /** @internal */
    protected readonly parts: SchedulesParts,
  ) {
    this.drafts = new Drafts(parts);
  }

  /**
   * Declares a schedule under its key, in one atomic step. Declared again as it is, nothing moves; with other times, its next
   * slot is theirs at once; with other data, rules or options, the next slot is the first to have them. A paused one stays paused.
   * @throws EchoArgumentError for times that make no sense or never come; EchoDataError as enqueue does
   */
  put<Of extends string | Queue, Name extends NameFor<Of>>(
    queue: Of,
    key: string,
    times: ScheduleTimes,
    name: Name,
    ...data: DataArguments<Of, Name, ScheduleOptions>
  ): Promise<DeclaredSchedule>;
  async put(
    queue: string | Queue,
    key: string,
    times: ScheduleTimes,
    name: string,
    data?: unknown,
    options?: ScheduleOptions,
  ): Promise<DeclaredSchedule> {
    const keys = this.keys(queue);
    const prepared = await this.prepare(queue, { key, times, name, data, options });
    const { now } = await this.run(wire.scheduleGet, keys, key);
    return this.send(keys, prepared, now, ORIGIN.put);
  }

  /**
   * Declares all schedules that code has for a queue, as {@link put} does. Answers what became of each, and the keys that were
   * declared so before and are not any more: they go on until {@link prune} or {@link Schedules.remove}.
   */
  async declare(queue: string | Queue, declarations: readonly ScheduleDeclaration[]): Promise<DeclareAnswer> {
    const keys = this.keys(queue);
    if (!Array.isArray(declarations)) throw new EchoArgumentError(`declare takes an array, got ${show(declarations)}`);
    const prepared = await Promise.all(declarations.map((declaration) => this.prepare(queue, declaration)));
    const names = new Set<string>();
    for (const { key } of prepared) {
      if (names.has(key)) throw new EchoArgumentError(`queue '${keys.queue}': schedule '${key}' is declared twice`);
      names.add(key);
    }
    this.declared.set(keys.queue, names);
    const declared: DeclaredSchedule[] = [];
    if (prepared.length > 0) {
      const { now } = await this.run(wire.scheduleGet, keys, prepared[0]!.key);
      declared.push(...(await Promise.all(prepared.map((one) => this.send(keys, one, now, ORIGIN.declared)))));
    }
    return { declared, undeclared: await this.undeclared(keys, names) };
  }

  /**
   * @internal the same for a process that runs whatever the server says: what it does not take now is told, and tried again until
   * it does. Resolves after the first try, `done` being called then or later. @throws EchoArgumentError for what makes no sense
   */
  async keepDeclared(
    queue: string | Queue,
    declarations: readonly ScheduleDeclaration[],
    done: (answer: DeclareAnswer) => Promise<void>,
  ): Promise<void> {
    const name = queueName(queue);
    const kept: Kept = { queue, declarations, done };
    this.kept.set(name, kept);
    let answer: DeclareAnswer;
    try {
      answer = await this.declare(queue, declarations);
    } catch (error) {
      if (error instanceof EchoArgumentError) throw error;
      if (this.stopped) return;
      if (declarations.length > 0) this.parts.fault(asEchoError(error)); // without any, nobody is waiting for it
      this.parts.metronome.after(TRY_AGAIN_MS, () => {
        if (this.kept.get(name) !== kept) return; // a module that was loaded late has added to them
        this.keepDeclared(queue, declarations, done).catch((error) => this.parts.fault(asEchoError(error)));
      });
      return;
    }
    await done(answer);
  }

  /**
   * @internal the server does not know this process any more, and so may have lost all it knew: what was given to
   * {@link keepDeclared} and is not there is declared again. What is there stays as it is: it may be of a later version of the app.
   */
  async declareLost(): Promise<void> {
    try {
      for (const kept of this.kept.values()) await this.declareMissing(kept);
    } catch (error) {
      if (this.stopped) return;
      this.parts.fault(asEchoError(error));
      this.parts.metronome.after(TRY_AGAIN_MS, () => this.declareLost());
    }
  }

  /** @internal */
  stop(): void {
    this.stopped = true;
  }

  /**
   * Removes the schedules that some code has declared for the queue and this process's code does not; answers their keys. Those
   * made by {@link put} stay. @throws EchoStateError when this process has declared nothing for the queue, not even that there is none
   */
  async prune(queue: string | Queue): Promise<string[]> {
    const keys = this.keys(queue);
    const names = this.declared.get(keys.queue);
    if (names === undefined) {
      throw new EchoStateError(
        `queue '${keys.queue}': this process has declared no schedules for it, and so cannot tell which are left over: call schedules.declare() before, with an empty array if there are none`,
      );
    }
    const undeclared = await this.undeclared(keys, names);
    if (undeclared.length > 0) await this.run(wire.scheduleRemove, keys, undeclared);
    return undeclared;
  }

  /** @internal */
  protected keys(queue: string | Queue): QueueKeys {
    return this.parts.keyspace.queue(queueName(queue));
  }

  /** @internal */
  protected run<Call, Answer>(step: Transition<Call, Answer>, keys: QueueKeys, call: Call): Promise<Answer> {
    return this.parts.executor.run(step, keys, call, this.parts.requestTimeoutMs);
  }

  /** @internal */
  protected page(keys: QueueKeys, offset: number, limit: number) {
    return this.run(wire.scheduleList, keys, { offset, limit, maxBytes: PAGE_BYTES, due: false });
  }

  private async prepare(queue: string | Queue, declaration: ScheduleDeclaration): Promise<Prepared> {
    assertKnownKeys(declaration, DECLARATION, "a schedule's declaration");
    const { key, name, data, options } = declaration as ScheduleDeclaration;
    assertScheduleKey(key);
    const times = checkedTimes(declaration.times);
    const { rules, landing } = checkedOptions(options);
    if (typeof name !== 'string' || name === '') {
      throw new EchoArgumentError(`a job's name must be a string that is not empty, got ${show(name)}`);
    }
    const payload = this.drafts.encode(name, data, landing.travelling);
    if (typeof queue !== 'string') await checkData(queue, name, data);
    const fields = this.parts.laneRules.fields(queue, name, data, options?.lane, landing.fields);
    const call = { spec: timesText(times), rules: rulesText(rules), payload, fields };
    return { key, times, call };
  }

  private async declareMissing({ queue, declarations, done }: Kept): Promise<void> {
    const keys = this.keys(queue);
    const declared: DeclaredSchedule[] = [];
    for (const declaration of declarations) {
      const { now, schedule } = await this.run(wire.scheduleGet, keys, declaration.key);
      if (schedule !== undefined) continue;
      declared.push(await this.send(keys, await this.prepare(queue, declaration), now, ORIGIN.declared));
    }
    if (declared.length > 0) await done({ declared, undeclared: [] });
  }

  private async send(
    keys: QueueKeys,
    { key, times, call }: Prepared,
    now: number,
    origin: string,
  ): Promise<DeclaredSchedule> {
    const rev = base62(randomBytes(8).readBigUInt64BE());
    const { what, nextSlot } = await this.run(wire.schedulePut, keys, {
      ...call,
      key,
      rev,
      nextSlot: slotAfter(times, now),
      origin,
    });
    return { key, what, nextSlot: dateOf(nextSlot) };
  }

  private async undeclared(keys: QueueKeys, names: ReadonlySet<string>): Promise<string[]> {
    const found = new Set<string>();
    for (let offset = 0; ; ) {
      const { schedules, total } = await this.page(keys, offset, MOST_PER_PAGE);
      for (const { key, row } of schedules) {
        if (row.get('origin')?.toString() === ORIGIN.declared && !names.has(key)) found.add(key);
      }
      offset += schedules.length;
      if (schedules.length === 0 || offset >= total) return [...found].sort();
    }
  }
}
