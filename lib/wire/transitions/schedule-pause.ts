import { type Outcome, outcomeOf } from '../../kernel/outcome.js';
import { integer } from '../reply.js';
import { transition } from '../transition.js';

export const schedulePause = transition<string, Outcome>({
  name: 'schedule_pause',
  keys: ['schedules', 'base'],
  args: 'key',
  answers: '1 paused, 0 gone, -2 it was',
  resend: true,
  encode: (key) => [key],
  decode: (reply) => outcomeOf(integer(reply)),
});

export interface ScheduleResume {
  key: string;
  /** The declaration that the next slot was counted from. */
  rev: string;
  nextSlot: number;
}

export const scheduleResume = transition<ScheduleResume, Outcome>({
  name: 'schedule_resume',
  keys: ['schedules', 'base'],
  args: 'key, rev, next slot',
  answers: '1 resumed, 0 gone, -1 changed meanwhile, -2 not paused',
  resend: true,
  encode: ({ key, rev, nextSlot }) => [key, rev, nextSlot],
  decode: (reply) => outcomeOf(integer(reply)),
});
