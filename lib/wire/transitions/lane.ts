import { array, fromZero, integer } from '../reply.js';
import { transition } from '../transition.js';

export interface LaneCall {
  kind: 'lane' | 'group' | 'all';
  /** Of a lane as its row names it; empty of all. */
  name: string;
  /** Flat settings and values; an empty value takes the setting back. */
  settings: readonly string[];
}

/** Changes what lanes are judged by. */
export const lane = transition<LaneCall, void>({
  name: 'lane',
  keys: ['lanes', 'base'],
  args: 'kind, name, settings and values; or nothing: brings back what is due',
  answers: '1; without arguments how many were due, and milliseconds until the next or -1',
  resend: true, // it says what is to be
  encode: ({ kind, name, settings }) => [kind, name, ...settings],
  decode: () => undefined,
});

/** The same without arguments: brings back the parked lanes whose time has come. */
export const unpark = transition<void, { brought: number; nextInMs: number | undefined }>({
  ...{ name: 'lane', keys: ['lanes', 'base'], args: lane.args, answers: lane.answers },
  resend: true,
  encode: () => [],
  decode(reply) {
    const [brought, next] = array(reply).map(integer) as [number, number];
    return { brought, nextInMs: fromZero(next) };
  },
});
