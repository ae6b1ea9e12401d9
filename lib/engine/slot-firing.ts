import type { Codec } from '../kernel/codec.js';
import { type EchoError, EchoStateError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import { planSlots } from '../kernel/schedule-slots.js';
import { readRules, readTimes } from '../kernel/schedule-spec.js';
import type { Executor } from '../wire/executor.js';
import { type ScheduleFireItem, type ScheduleRow, scheduleFire, scheduleList } from '../wire/transitions/index.js';
import { assertEncoded } from './encoding.js';
import type { Minting } from './minting.js';
import { portions } from './portions.js';

export interface SlotFiringParts {
  readonly executor: Executor;
  readonly codec: Codec;
  readonly minting: Minting;
  readonly fault: (error: EchoError) => void;
}

/** A queue whose slots are fired. */
export interface FiringQueue {
  readonly keys: QueueKeys;
  /** Sends, and if the queue's consumer is idle here, has it claim right behind. */
  behind<T>(send: () => T): T;
}

const DUE = { offset: 0, limit: 100, maxBytes: 2_000_000, due: true };
const PAUSE_MS = 250;

const bytesOf = ({ payload }: ScheduleFireItem) => payload.length;

/**
 * What a queue's leader does about repeating schedules. The slots are counted here, from the schedule's times; whether one may
 * fire is decided by the server, so that two who believe they lead do no harm.
 */
export class SlotFiring {
  constructor(private readonly parts: SlotFiringParts) {}

  /** Fires all slots that are due, while `leads`; answers the milliseconds until the next. @throws EchoError */
  async fire(queue: FiringQueue, leads: () => boolean): Promise<number | undefined> {
    const { executor } = this.parts;
    const { keys } = queue;
    for (;;) {
      const { now, nextInMs, schedules } = await executor.run(scheduleList, keys, DUE);
      const items = schedules.flatMap((schedule) => this.itemsOf(keys, schedule, now));
      if (items.length === 0 || !leads()) return nextInMs;
      let moved = 0;
      let left: number | undefined;
      for (const portion of portions(items, bytesOf)) {
        const fired = await queue.behind(() => executor.run(scheduleFire, keys, portion));
        moved += fired.outcomes.filter((outcome) => outcome === 'ok' || outcome === 'overlap').length;
        left = fired.nextInMs;
      }
      if (left !== 0) return left;
      // Somebody else was faster, or a clock went back.
      if (moved === 0) return Math.min(nextInMs ?? PAUSE_MS, PAUSE_MS);
    }
  }

  private itemsOf({ queue }: QueueKeys, schedule: ScheduleRow, now: number): ScheduleFireItem[] {
    const { key, nextSlot: due, row } = schedule;
    const word = (field: string) => row.get(field)?.toString() ?? '';
    const item = { key, rev: word('rev'), alone: false, id: '', payload: '' };
    if (row.size === 0) return [{ ...item, slot: due, nextSlot: due + 1 }]; // a row that somebody has deleted: it goes

    if (!Number.isSafeInteger(due) || due < 0) return this.unread(queue, key, 'make sense of its next slot');
    const [times, rules] = [readTimes(word('spec')), readRules(word('rules'))];
    if (times === undefined || rules === undefined) return this.unread(queue, key, 'make sense of its times or rules');
    const { fire, next } = planSlots(times, rules.catchUp, due, now);
    if (fire.length === 0) return [{ ...item, slot: due, nextSlot: next }];

    const items: ScheduleFireItem[] = [];
    for (const [i, slot] of fire.entries()) {
      const payload = slotPayload(this.parts.codec, schedule, slot);
      if (payload === undefined) return this.unread(queue, key, 'read its job by its codec, or write it');
      // Between two of them the schedule stands at the second: whoever takes over goes on from there.
      const nextSlot = fire[i + 1] ?? next;
      items.push({
        ...item,
        slot,
        nextSlot,
        alone: rules.overlap === 'skip',
        id: this.parts.minting.require(),
        payload,
      });
    }
    return items;
  }

  /** Left as it is, for a process that can. */
  private unread(queue: string, key: string, what: string): [] {
    this.parts.fault(
      new EchoStateError(`queue '${queue}': schedule '${key}' is due and does not fire: this process cannot ${what}`),
    );
    return [];
  }
}

/** The bytes of a schedule's job for one slot; undefined when the codec cannot read the schedule's, or write them. */
export function slotPayload(
  codec: Codec,
  { key, row }: ScheduleRow,
  slot: number | undefined,
): string | Buffer | undefined {
  try {
    const envelope = codec.decode(row.get('payload')!);
    if (envelope === undefined) return undefined;
    const { name, data, opts } = envelope;
    const payload = codec.encode(name, data, { ...opts, schedule: key, ...(slot === undefined ? {} : { slot }) });
    assertEncoded(payload, 'encode', 'the job', Number.POSITIVE_INFINITY); // its size was looked at when it was declared
    return payload;
  } catch {
    return undefined;
  }
}
