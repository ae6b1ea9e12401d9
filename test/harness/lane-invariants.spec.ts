import { describe, expect, it } from '@jest/globals';
import type { QueueDump } from '../support/dump.js';
import { checkInvariants, InvariantWatch } from '../support/invariants.js';

const [PLAIN, WAITS, RUNS, INNER, HELD] = [1, 2, 3, 4, 5].map((n) => `JOB0000000000${n}`) as [
  string,
  string,
  string,
  string,
  string,
];
const row = (state: string, lane?: string) => ({
  hash: { state, attempts: state === 'active' ? '1' : '0', payload: 'p', ...(lane === undefined ? {} : { lane }) },
});

/** A job without a lane; lane x has one that waits and one that runs; one of group g waits; one of lane r is held by its rate. */
const sound: QueueDump = {
  pending: { zset: [[PLAIN, 0]] },
  'lane:x': { zset: [[WAITS, 0]] },
  'lane:g\u001fin': { zset: [[INNER, 0]] },
  'lane:r': { zset: [[HELD, 0]] },
  active: { zset: [[RUNS, 4_000_000_000_000]] },
  [`job:${PLAIN}`]: row('pending'),
  [`job:${WAITS}`]: row('pending', 'x'),
  [`job:${RUNS}`]: row('active', 'x'),
  [`job:${INNER}`]: row('pending', 'g\u001fin'),
  [`job:${HELD}`]: row('pending', 'r'),
  'metrics:enqueued': { hash: { count: '5' } },
  lanes: {
    zset: [
      ['', 500],
      ['g\u001f', 700],
      ['x', 1000],
    ],
  },
  'lanes:floor': { string: '500' },
  'lanes:active': { hash: { [RUNS]: 'x' } },
  'lanes:parked': { zset: [['r', 4_000_000_000_000]] },
  'lanes:total': { string: '3' },
  'lanes:waiting': {
    zset: [
      ['g\u001f', 0],
      ['idle', 0],
      ['g\u001fin', 1],
      ['r', 1],
      ['x', 1],
    ],
  },
  'lanestate:x': { hash: { active: '1', tag: '1000', cap: '2' } },
  'lanestate:r': { hash: { tat: '4000000005000', interval: '5000', burst: '2', tag: '500' } },
  'lanestate:idle': { hash: { active: '0', tag: '900' } },
  'laneidle:': { zset: [['idle', 900]] },
  'lanegroup:g': { zset: [['g\u001fin', 300]] },
  'lanegroupstate:g': { hash: { lanes: '1', floor: '300', tag: '600' } },
};

const state = (fields: Record<string, string>) => ({ hash: fields });

describe('the invariants of lanes', () => {
  it('hold of lanes that wait, run, are held and are idle', () => {
    expect(checkInvariants(sound)).toEqual([]);
  });

  const broken: [what: string, change: QueueDump, ...faults: string[]][] = [
    [
      'a lane in two places',
      { 'lanes:parked': { zset: [...zset('lanes:parked'), ['x', 0]] } },
      'I8 lane "x" is in its ring and parked',
    ],
    [
      'a lane with jobs that stands nowhere',
      { 'lanes:parked': { zset: [] } },
      'I8 lane "r", which has jobs, is nowhere',
    ],
    [
      'a lane at its cap in the ring',
      { 'lanestate:x': state({ active: '1', tag: '1000', cap: '1' }) },
      'I8 lane "x", which can give no jobs, is in its ring',
    ],
    [
      'a lane at the cap of all in the ring',
      { 'lanestate:x': state({ active: '1', tag: '1000' }), 'lanes:defaults': state({ cap: '1' }) },
      'I8 lane "x", which can give no jobs, is in its ring',
    ],
    [
      'a lane in the ring that is paused',
      { 'lanestate:x': state({ active: '1', paused: '1' }) },
      'I8 lane "x", which can give no jobs, is in its ring',
    ],
    ['the default lane, empty, in the ring', { pending: { zset: [] } }, ...emptied()],
    [
      'a lane that is parked too long',
      { 'lanes:parked': { zset: [['r', 4_000_000_000_001]] } },
      'I8 lane "r" is parked until 4000000000001, not 4000000000000',
    ],
    [
      'a cap that was not given back',
      { 'lanestate:x': state({ active: '2', tag: '1000' }) },
      'I8 lane "x" counts 2 active, and 1 are',
    ],
    [
      'a running job that its lane does not know',
      { 'lanes:active': state({}), 'lanestate:x': state({ active: '0', tag: '1000' }) },
      `I8 ${RUNS} runs, and its lane "x" does not know`,
    ],
    [
      'a job that counts as running and waits',
      { 'lanes:active': state({ [RUNS]: 'x', [WAITS]: 'x' }), 'lanestate:x': state({ active: '2', tag: '1000' }) },
      `I8 ${WAITS} counts as running in lane "x", and does not run`,
    ],
    [
      'a job that counts in another lane',
      { [`job:${RUNS}`]: row('active', 'idle') },
      `I8 ${RUNS} runs in lane "x", not idle`,
    ],
    [
      'a group without lanes in the ring',
      { 'lanegroup:g': { zset: [] } },
      'I8 lane "g/in", which has jobs, is nowhere',
      'I8 group "g/" is in the ring of groups',
    ],
    [
      'a group that lost count of its lanes',
      { 'lanegroupstate:g': state({ lanes: '2', floor: '300' }) },
      'I8 group "g/" counts 2 lanes, and has 1',
    ],
    [
      'a lane of a group in the ring of groups',
      { lanes: { zset: [...zset('lanes'), ['g\u001fin', 800]] } },
      'I8 "g/in" stands in ring ""',
    ],
    [
      'a lane that is not known',
      { 'lanes:waiting': { zset: zset('lanes:waiting').slice(0, -1) }, 'lanes:total': { string: '2' } },
      'I8 lane "x" is not among the known',
    ],
    [
      'a lane whose jobs were miscounted',
      {
        'lanes:waiting': { zset: [...zset('lanes:waiting').slice(0, -1), ['x', 2]] },
        'lanes:total': { string: '4' },
      },
      'I8 lane "x" is known with 2 jobs, and has 1',
    ],
    ['a wrong total', { 'lanes:total': { string: '4' } }, 'I8 lanes:total is 4, and 3 jobs wait in lanes'],
    [
      'an idle lane that nobody will forget',
      { 'laneidle:': { zset: [] } },
      'I8 "idle" is idle, and nobody will forget it',
    ],
    [
      'an idle lane that will be forgotten early',
      { 'laneidle:': { zset: [['idle', 800]] } },
      'I8 "idle" is idle at 800, and its tag is 900',
    ],
    [
      'a known lane that will expire',
      { 'lanestate:x': { ...state({ active: '1', tag: '1000', cap: '2' }), expires: true } },
      'I8 lane "x" is known, and its state will expire',
    ],
    ['a lane behind virtual time', { 'lanes:floor': { string: '600' } }, 'I8 "" stands at 500, below the floor 600'],
    [
      'a lane before its tag',
      { 'lanestate:x': state({ active: '1', tag: '1001' }) },
      'I8 "x" stands at 1000, before its tag 1001',
    ],
    ['a ring of another type', { 'lanegroup:g': { string: 'x' } }, 'row "lanegroup:g" has the wrong type'],
  ];

  it.each(broken)('do not hold of %s', (_what, change, ...faults) => {
    expect(checkInvariants({ ...sound, ...change })).toEqual(faults);
  });

  it('want nothing of lanes in a queue that never had any, but for a hold of the whole', () => {
    const plain: QueueDump = { 'lanes:parked': { zset: [['\u001f', 5]] } };
    expect(checkInvariants(plain)).toEqual([]);
    expect(checkInvariants({ ...plain, 'lanestate:x': state({ cap: '1' }) })).toEqual([
      'I8 "lanestate:x" is there, and lanes have not begun',
    ]);
  });

  it('see virtual time go back', () => {
    const watch = new InvariantWatch();
    expect(watch.see(sound)).toEqual([]);
    expect(watch.see({ ...sound, 'lanes:floor': { string: '400' } })).toEqual([
      'I8 virtual time went from 500 down to 400',
    ]);
  });
});

function zset(key: string): [member: string, score: number][] {
  const held = sound[key]!;
  return 'zset' in held ? held.zset : [];
}

function emptied(): string[] {
  return [
    `I2 ${PLAIN} has a row (pending) and stands nowhere`,
    'I7 enqueued 5 is not completed 0 + removed 0 + members 4',
    'I8 lane "", which can give no jobs, is in its ring',
  ];
}
