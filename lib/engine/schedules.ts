import { assertInteger, assertKnownKeys } from '../kernel/arguments.js';
import { EchoStateError } from '../kernel/errors.js';
import { assertScheduleKey, type QueueKeys } from '../kernel/keyspace.js';
import type { Outcome } from '../kernel/outcome.js';
import type { Queue } from '../kernel/queue.js';
import { slotAfter } from '../kernel/schedule-slots.js';
import { type FullTimes, readRules, readTimes } from '../kernel/schedule-spec.js';
import type { Transition } from '../wire/transition.js';
import * as wire from '../wire/transitions/index.js';
import { envelopeOf } from './job-view.js';
import { type RunNow, type Schedule, type SchedulePage, scheduleOf } from './schedule-calls.js';
import { MOST_PER_PAGE, SchedulesDeclaring } from './schedules-declaring.js';
import { slotPayload } from './slot-firing.js';

const LIST_OPTIONS = new Set(['offset', 'limit']);
/** What it was counted from was changed under it, so often. */
const MOST_TRIES = 10;

/**
 * Repeating schedules: each lands a job of a queue again and again, at its slots. A process that consumes the queue fires them;
 * where there are several, one of them. A slot fires once, whoever fires it.
 *
 * Every method takes the queue first, refuses nonsense with an EchoArgumentError before a byte is sent, and rejects with an
 * EchoError when the server cannot do it.
 */
export class Schedules extends SchedulesDeclaring {
  async get(queue: string | Queue, key: string): Promise<Schedule | undefined> {
    const { schedule } = await this.look(queue, key);
    return schedule && this.view(schedule);
  }

  /** A page of schedules, the next to fire first, paused ones last: 1 to 1,000, default 100, from `offset`. */
  async list(
    queue: string | Queue,
    options: { offset?: number | undefined; limit?: number | undefined } = {},
  ): Promise<SchedulePage> {
    const keys = this.keys(queue);
    assertKnownKeys(options, LIST_OPTIONS, 'list options');
    const { offset = 0, limit = 100 } = options;
    assertInteger(offset, 'offset', 0);
    assertInteger(limit, 'limit', 1, MOST_PER_PAGE);
    const { schedules, total } = await this.page(keys, offset, limit);
    const end = offset + schedules.length;
    return {
      schedules: schedules.filter(({ row }) => row.size > 0).map((schedule) => this.view(schedule)),
      total,
      next: schedules.length > 0 && end < total ? end : undefined,
    };
  }

  /** From now on no slot fires, until {@link resume}; declaring it again changes nothing about that. `wrong_state`: it was paused. */
  async pause(queue: string | Queue, key: string): Promise<Outcome> {
    assertScheduleKey(key);
    return this.switch(wire.schedulePause, this.keys(queue), key);
  }

  /** Goes on with the first slot from now: those that were meanwhile are not made up for. `wrong_state`: it is not paused. */
  async resume(queue: string | Queue, key: string): Promise<Outcome> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { keys, now, schedule } = await this.look(queue, key);
      if (schedule === undefined) return 'gone';
      const times = this.timesOf(keys, schedule);
      const call = { key, rev: wordOf(schedule, 'rev'), nextSlot: slotAfter(times, now) };
      const outcome = await this.switch(wire.scheduleResume, keys, call);
      if (outcome !== 'stale') return outcome;
    }
    throw this.restless(key);
  }

  /**
   * Lands a job now, of a paused one too, and moves no slot; such a job has no `slot`. Under `overlap: 'skip'` it lands only when
   * the last one has ended, and until it has ended slots go without a job.
   */
  async runNow(queue: string | Queue, key: string): Promise<RunNow> {
    const { minting, codec, requestTimeoutMs } = this.parts;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { keys, schedule } = await this.look(queue, key);
      if (schedule === undefined) return { status: 'gone', id: undefined };
      const payload = slotPayload(codec, schedule, undefined);
      if (payload === undefined)
        throw new EchoStateError(`schedule '${key}': the codec cannot read its job, or write it`);
      let id = minting.next();
      if (id === undefined) {
        await minting.renewWithin(requestTimeoutMs);
        id = minting.require();
      }
      const alone = readRules(wordOf(schedule, 'rules'))?.overlap === 'skip';
      const item = { key, rev: wordOf(schedule, 'rev'), slot: undefined, nextSlot: 1, alone, id, payload };
      const { outcomes } = await this.run(wire.scheduleFire, keys, [item]);
      if (outcomes[0] === 'ok') return { status: 'landed', id };
      if (outcomes[0] === 'overlap') return { status: 'overlap', id: schedule.row.get('last_job')?.toString() };
    }
    throw this.restless(key);
  }

  /** Removes a schedule; jobs that it has landed stay. False when there is none. */
  async remove(queue: string | Queue, key: string): Promise<boolean> {
    assertScheduleKey(key);
    let resent = false;
    const onResend = () => {
      resent = true;
    };
    const { executor, requestTimeoutMs } = this.parts;
    const [removed] = await executor.run(wire.scheduleRemove, this.keys(queue), [key], requestTimeoutMs, onResend);
    return removed! || resent;
  }

  private async look(queue: string | Queue, key: string) {
    assertScheduleKey(key);
    const keys = this.keys(queue);
    return { keys, ...(await this.run(wire.scheduleGet, keys, key)) };
  }

  private view(schedule: wire.ScheduleRow): Schedule {
    return scheduleOf(schedule, envelopeOf(schedule.row.get('payload') ?? Buffer.alloc(0), this.parts.codec));
  }

  private timesOf({ queue }: QueueKeys, schedule: wire.ScheduleRow): FullTimes {
    const times = readTimes(wordOf(schedule, 'spec'));
    if (times !== undefined) return times;
    throw new EchoStateError(
      `queue '${queue}': this process cannot make sense of the times of schedule '${schedule.key}'`,
    );
  }

  private restless(key: string): EchoStateError {
    return new EchoStateError(`schedule '${key}' was declared anew ${MOST_TRIES} times meanwhile: try again`);
  }

  /** After a second sending, the answer may speak of what the first one did. */
  private async switch<Call>(step: Transition<Call, Outcome>, keys: QueueKeys, call: Call): Promise<Outcome> {
    let resent = false;
    const onResend = () => {
      resent = true;
    };
    const outcome = await this.parts.executor.run(step, keys, call, this.parts.requestTimeoutMs, onResend);
    return resent && outcome === 'wrong_state' ? 'ok' : outcome;
  }
}

function wordOf({ row }: wire.ScheduleRow, field: string): string {
  return row.get(field)?.toString() ?? '';
}
