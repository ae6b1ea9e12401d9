import { type Arg, array, fromZero, integer } from '../reply.js';
import { transition } from '../transition.js';

export interface ScheduleFireItem {
  key: string;
  /** The declaration that the caller has seen. */
  rev: string;
  /** Milliseconds since 1970; undefined lands a job now and moves no slot. */
  slot: number | undefined;
  nextSlot: number;
  /** Not while the last job has not ended. */
  alone: boolean;
  /** Empty: the slot passes without a job. */
  id: string;
  payload: string | Buffer;
}

/** `overlap`: the last job has not ended; `early`: not due by the server's clock. */
export type FireOutcome = 'ok' | 'overlap' | 'fired' | 'changed' | 'early';

export interface Fired {
  outcomes: FireOutcome[];
  /** Milliseconds from the server's now until the next slot of any schedule. */
  nextInMs: number | undefined;
}

const OUTCOMES: Readonly<Record<number, FireOutcome>> = {
  1: 'ok',
  2: 'overlap',
  0: 'fired',
  [-1]: 'changed',
  [-2]: 'early',
};

export const scheduleFire = transition<readonly ScheduleFireItem[], Fired>({
  name: 'schedule_fire',
  keys: ['pending', 'schedules', 'base'],
  args: 'per item: key, rev, slot or empty, next slot, alone(0/1), id or empty, payload',
  answers:
    'per item 1 done, 2 the last job has not ended, 0 fired already, -1 changed, -2 not due; ms until the next slot or -1',
  resend: true, // a slot fires once, and an id lands once
  encode: (items) =>
    items.flatMap(({ key, rev, slot, nextSlot, alone, id, payload }): Arg[] => [
      key,
      rev,
      slot ?? '',
      nextSlot,
      alone ? 1 : 0,
      id,
      payload,
    ]),
  decode(reply) {
    const codes = array(reply).map(integer);
    const nextInMs = fromZero(codes.pop()!);
    return { outcomes: codes.map((code) => OUTCOMES[code]!), nextInMs };
  },
});
