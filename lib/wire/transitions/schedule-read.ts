import { array, fromZero, integer, type Reply, text } from '../reply.js';
import { transition } from '../transition.js';
import { type Row, row } from './row.js';

/** A repeating schedule as it stands. */
export interface ScheduleRow {
  key: string;
  /** Milliseconds since 1970; 2^53-1 while it is paused. */
  nextSlot: number;
  /** Empty when somebody has deleted it by hand. */
  row: Row;
}

export interface ScheduleLook {
  /** The server's clock, milliseconds since 1970. */
  now: number;
  schedule: ScheduleRow | undefined;
}

export interface ScheduleListCall {
  offset: number;
  limit: number;
  maxBytes: number;
  /** Only those whose slot has come. */
  due: boolean;
}

export interface ScheduleList {
  now: number;
  total: number;
  /** Until the first that is not due. */
  nextInMs: number | undefined;
  schedules: ScheduleRow[];
}

const rowOf = (reply: Reply | undefined): Row => row(reply) ?? new Map();

export const scheduleGet = transition<string, ScheduleLook>({
  name: 'schedule_get',
  keys: ['schedules', 'base'],
  args: 'key',
  answers: 'now, next slot or -1, flat fields',
  resend: true,
  encode: (key) => [key],
  decode(reply, key) {
    const [now, nextSlot, fields] = array(reply);
    const known = { key, nextSlot: integer(nextSlot), row: rowOf(fields) };
    return { now: integer(now), schedule: known.nextSlot >= 0 && known.row.size > 0 ? known : undefined };
  },
});

export const scheduleList = transition<ScheduleListCall, ScheduleList>({
  name: 'schedule_list',
  keys: ['schedules', 'base'],
  args: 'offset, limit, max_bytes, due(0/1)',
  answers:
    'now, how many there are, ms until the first that is not due or -1, then per schedule: key, next slot, flat fields',
  resend: true,
  encode: ({ offset, limit, maxBytes, due }) => [offset, limit, maxBytes, due ? 1 : 0],
  decode(reply) {
    const [now, total, nextInMs, ...members] = array(reply);
    const schedules = members.map((member) => {
      const [key, nextSlot, fields] = array(member);
      return { key: text(key), nextSlot: integer(nextSlot), row: rowOf(fields) };
    });
    return { now: integer(now), total: integer(total), nextInMs: fromZero(integer(nextInMs)), schedules };
  },
});
