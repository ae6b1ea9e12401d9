import { expect } from '@jest/globals';
import { gone, zset } from './changes.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { type Lanes, laneChanges, laned, QUEUE_HELD, SEP } from './laned.js';
import { each, NOT_NUMBERS } from './malformed.js';
import { msUntil } from './server-time.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const waits = { [A]: 0, [B]: 0 };
const state = (name: string, fields: Record<string, string>) => ({ [`lanestate:${name}`]: { hash: fields } });
const WOKEN: [string, unknown][] = [['w:p1', '']];

describeTransition('lane', (table) => {
  table.it('begins lanes in a queue that has none, whose jobs are one of them from now on', {
    given: (queue) => queue.pending(A),
    call: ['lane', 'x', 'weight', '2.5', 'cap', 3, 'interval', '0.5', 'burst', 2, 'max_waiting', 10],
    answer: 1,
    changes: {
      ...{ 'lanes:floor': { string: '0' }, lanes: zset(['', 0]), 'lanes:waiting': zset(['x', 0]) },
      ...state('x', { weight: '2.5', cap: '3', interval: '0.5', burst: '2', max_waiting: '10' }),
    },
  });

  table.it('keeps the settings that are not named, and takes one back', {
    given: (queue) => laned(queue, { lanes: { x: { state: { weight: 2, cap: 3 } } } }),
    call: ['lane', 'x', 'cap', '', 'burst', '4'],
    answer: 1,
    changes: state('x', { weight: '2', burst: '4' }),
  });

  table.it('forgets a lane whose last setting is taken back, and its group with it', {
    given: (queue) => laned(queue, { lanes: { [`g${SEP}x`]: { state: { cap: 3 } } } }),
    call: ['lane', `g${SEP}x`, 'cap', ''],
    answer: 1,
    changes: { [`lanestate:g${SEP}x`]: gone, 'lanegroupstate:g': gone, 'lanes:waiting': gone },
  });

  table.it('leaves nothing of a lane that never was, when it takes settings back', {
    call: ['lane', 'x', 'cap', '', 'until', ''],
    answer: 1,
    changes: { 'lanes:floor': { string: '0' } },
  });

  const running: Lanes = { lanes: { x: { waits, runs: [C], tag: 100 } } };
  const capped = (fields: Record<string, string>, out: boolean): Lanes => ({
    lanes: { x: { waits, runs: [C], tag: 100, state: fields, out } },
  });
  table.it('takes a lane out of the ring whose cap is reached as it is set', {
    given: (queue) => laned(queue, running),
    call: ['lane', 'x', 'cap', 1],
    answer: 1,
    changes: laneChanges(running, capped({ cap: '1' }, true)),
  });

  table.it('puts it back when the cap is raised, and wakes a process', {
    given: async (queue) => {
      await laned(queue, capped({ cap: '1' }, true));
      await queue.hungry('p1');
    },
    call: ['lane', 'x', 'cap', 2],
    answer: 1,
    changes: { ...laneChanges(capped({ cap: '1' }, true), capped({ cap: '2' }, false)), hungry: gone },
    hears: WOKEN,
  });

  table.it('lets a lane have no cap whatever stands for all', {
    given: (queue) => laned(queue, { ...capped({}, true), defaults: { cap: '1' } }),
    call: ['lane', 'x', 'cap', '-'],
    answer: 1,
    changes: laneChanges(
      { ...capped({}, true), defaults: { cap: '1' } },
      { ...capped({ cap: '-' }, false), defaults: { cap: '1' } },
    ),
  });

  const paused = (out: boolean): Lanes => ({ lanes: { x: { waits, state: out ? { paused: '1' } : {}, out } } });
  table.it('pauses a lane', {
    given: (queue) => laned(queue, paused(false)),
    call: ['lane', 'x', 'paused', 1],
    answer: 1,
    changes: laneChanges(paused(false), paused(true)),
  });
  table.it('resumes it', {
    given: (queue) => laned(queue, paused(true)),
    call: ['lane', 'x', 'paused', ''],
    answer: 1,
    changes: laneChanges(paused(true), paused(false)),
  });
  table.it('pauses the jobs without a lane', {
    given: (queue) => laned(queue, { lanes: { '': { waits } } }),
    call: ['lane', '', 'paused', 1],
    answer: 1,
    changes: { lanes: gone, ...state('', { paused: '1' }) },
  });

  const grouped = (out: boolean): Lanes => ({
    lanes: { [`g${SEP}x`]: { waits } },
    groups: { g: out ? { state: { paused: '1' }, out } : {} },
  });
  table.it('pauses a group with all its lanes', {
    given: (queue) => laned(queue, grouped(false)),
    call: ['group', 'g', 'paused', 1],
    answer: 1,
    changes: laneChanges(grouped(false), grouped(true)),
  });
  table.it('resumes it', {
    given: (queue) => laned(queue, grouped(true)),
    call: ['group', 'g', 'paused', ''],
    answer: 1,
    changes: laneChanges(grouped(true), grouped(false)),
  });
  table.it('gives a group a weight before it has lanes', {
    call: ['group', 'g', 'weight', 3],
    answer: 1,
    changes: {
      ...{ 'lanes:floor': { string: '0' }, 'lanes:waiting': zset([`g${SEP}`, 0]) },
      'lanegroupstate:g': { hash: { weight: '3' } },
    },
  });

  table.it('keeps what stands for all, and judges no lane by it before it is touched', {
    given: (queue) => laned(queue, running),
    call: ['all', '', 'cap', 1, 'weight', 2],
    answer: 1,
    changes: { 'lanes:defaults': { hash: { cap: '1', weight: '2' } } },
    reachable: false,
  });
  table.it('judges a lane anew when it is named without settings', {
    given: (queue) => laned(queue, { ...running, defaults: { cap: '1' } }),
    call: ['lane', 'x'],
    answer: 1,
    changes: { lanes: gone },
  });

  const slow = (tat: number, parked: number): Lanes => ({
    lanes: { x: { waits, state: { interval: '1000', tat: String(tat) }, parked } },
  });
  table.it('parks a lane whose rate is already spent as it is set, and announces when it comes back', {
    given: (queue) => laned(queue, { lanes: { x: { waits, state: { tat: String(FAR) } } } }),
    call: ['lane', 'x', 'interval', 1000],
    answer: 1,
    changes: laneChanges({ lanes: { x: { waits, state: { tat: String(FAR) } } } }, slow(FAR, FAR)),
    hears: [['beat', expect.stringMatching(/^park:\d+$/)]],
  });
  table.it('lifts a hold', {
    given: (queue) => laned(queue, { lanes: { x: { waits, state: { until: String(FAR) }, parked: FAR } } }),
    call: ['lane', 'x', 'until', ''],
    answer: 1,
    changes: laneChanges(
      { lanes: { x: { waits, state: { until: String(FAR) }, parked: FAR } } },
      { lanes: { x: { waits } } },
    ),
  });

  const owing: Lanes = { lanes: { x: { state: { tat: String(FAR) }, fading: true } } };
  table.it('keeps the settings of a lane that was about to be forgotten', {
    given: (queue) => laned(queue, owing),
    call: ['lane', 'x', 'cap', 5],
    answer: 1,
    changes: { ...state('x', { tat: String(FAR), cap: '5' }), 'lanes:waiting': zset(['x', 0]) },
  });

  const nothing = async () => undefined;
  table.it('brings nothing back where nothing is parked', { call: [], answer: [0, -1] });
  table.it('brings back the parked lanes whose time has come, wakes a process, and says when the next is due', {
    given: async (queue) => {
      await laned(queue, {
        lanes: { ...slow(PAST, PAST).lanes, y: { waits: { [C]: 0 }, state: { until: FAR }, parked: FAR } },
      });
      await queue.hungry('p1');
    },
    call: [],
    answer: [1, msUntil(FAR)],
    changes: { 'lanes:parked': zset(['y', FAR]), lanes: zset(['x', 0]), hungry: gone },
    hears: WOKEN,
  });
  table.it('brings a lane of a group back into its ring, and the group into its own', {
    given: (queue) => laned(queue, { lanes: { [`g${SEP}x`]: { waits, state: { until: PAST }, parked: PAST } } }),
    call: [],
    answer: [1, -1],
    changes: { 'lanes:parked': gone, 'lanegroup:g': zset([`g${SEP}x`, 0]), lanes: zset([`g${SEP}`, 0]) },
  });
  table.it('wakes nobody while the queue is paused', {
    given: async (queue) => {
      await laned(queue, slow(PAST, PAST));
      await queue.hungry('p1');
      await queue.paused();
    },
    call: [],
    answer: [1, -1],
    changes: { 'lanes:parked': gone, lanes: zset(['x', 0]) },
  });
  table.it('wakes a process when the hold of a queue without lanes has ended', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.client.zadd(`${queue.keys.base}lanes:parked`, PAST, QUEUE_HELD);
      await queue.hungry('p1');
    },
    call: [],
    answer: [1, -1],
    changes: { 'lanes:parked': gone, hungry: gone },
    hears: WOKEN,
  });
  table.it('brings back 16 at a time', {
    given: async (queue) => {
      const many = Array.from({ length: 20 }, (_, n) => [
        `l${n}`,
        { waits: { [id(n)]: 0 }, state: { until: PAST }, parked: PAST },
      ]);
      await laned(queue, { lanes: Object.fromEntries(many) });
    },
    call: [],
    answer: [16, 0],
    changes: { 'lanes:parked': expect.anything() as never, lanes: expect.anything() as never },
  });

  const call = (...settings: (string | number)[]) => ['lane', 'x', ...settings];
  table.refuses('refuses what is no lane, group or all', nothing, [
    ...[['x', 'x'], ['', ''], ['lane'], ['lane', 'x', 'cap'], ['all', 'x'], ['group', ''], ['group', `g${SEP}`]],
    ...[SEP, `${SEP}x`, `g${SEP}`, `a${SEP}b${SEP}c`, 'x'.repeat(201), `g${SEP}${'x'.repeat(201)}`].map((name) => [
      'lane',
      name,
    ]),
  ]);
  table.refuses('refuses settings that there are not, and values that they do not take', nothing, [
    ...each(call('cap', '5') as string[], 3, [
      ...NOT_NUMBERS.filter((text) => !['', '05', '5.0'].includes(text)),
      '0',
      '-1',
    ]),
    ...each(call('weight', '5') as string[], 3, ['0', '0.09', '100.1', '-', 'nan', '1e1', ' 1', '-1']),
    ...[
      ['interval', '0'],
      ['interval', '-1'],
      ['burst', '0'],
      ['burst', '-'],
      ['max_waiting', '0'],
      ['paused', '0'],
      ['until', '5'],
    ].map((pair) => call(...pair)),
    ...[call('tat', '5'), call('active', '0'), call('', '5'), ['group', 'g', 'cap', '5'], ['lane', '', 'cap', '5']],
    ...[
      ['all', '', 'paused', '1'],
      ['all', '', 'until', ''],
    ],
  ]);
  table.refusesTypes(
    call('cap', 5),
    ['pending', 'hungry', 'lanes', 'lanes:parked', 'lanes:waiting', 'lanes:active', 'lanestate:x'],
    (queue: Hand) => queue.pending(A),
  );
  table.refusesTypes([], ['pending', 'hungry', 'lanes:parked'], (queue: Hand) => queue.pending(A));
});
