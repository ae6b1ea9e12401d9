import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Arg } from '../../lib/wire/reply.js';
import type { ScriptName } from '../../lib/wire/transition.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { Ear } from './ear.js';
import { useExecutor } from './executor.js';
import { waiting } from './family.js';
import { type Hand, id, PAST, Hand as QueueHand } from './hand.js';

const [A, B, C] = [id(1), id(2), id(3)];

type Case = [
  what: string,
  given: (queue: Hand) => Promise<unknown>,
  step: ScriptName,
  call: readonly Arg[],
  frames: readonly string[],
];

const none = async () => undefined;
const both = async (queue: Hand) => {
  await queue.active(A);
  await queue.active(B);
};

const CASES: Case[] = [
  [
    'jobs that land',
    none,
    'enqueue',
    [A, 'p', '', 0, B, 'p', '500', 0, A, 'p', '', 0, C, 'p', '', 1, 'lane', 'x'],
    [`landed ${A} 0 7 pending`, `landed ${B} 0 9 scheduled`, `landed ${C} 0 7 pending`],
  ],
  [
    'a tree that lands',
    none,
    'land',
    ['', '', A, 'p', '', 0, 1, 1, 1, 'parent', A, B, 'p', 0, 0, 0],
    [`landed ${A} 0 17 awaiting_children`, `landed ${B} 0 7 pending`],
  ],
  [
    'claims, but none of what has no row',
    async (queue) => {
      await queue.pending(A, { attempts: 3 });
      await queue.ghost('pending', B);
      await queue.pending(C);
    },
    'claim',
    [1000, 5],
    [`active ${A} 4 0 `, `active ${C} 1 0 `],
  ],
  [
    'completions, with their results',
    both,
    'complete',
    [0, A, 1, 0, '{"ö":1}\n', B, 9, 0, 'x', B, 1, 600_000, ''],
    [`completed ${A} 1 9 {"ö":1}\n`, `completed ${B} 1 0 `],
  ],
  ['no result over 4 KB', both, 'complete', [0, A, 1, 0, 'x'.repeat(4097)], [`completed ${A} 1 0 `]],
  ['one of 4 KB', both, 'complete', [0, A, 1, 0, 'x'.repeat(4096)], [`completed ${A} 1 4096 ${'x'.repeat(4096)}`]],
  [
    'failures that are tried again, and the last one',
    both,
    'retry',
    [0, A, 1, 500, 3, 'boom', B, 1, 0, 1, 'bang'],
    [`retried ${A} 1 4 boom`, `dead ${B} 1 4 bang`],
  ],
  [
    'lapsed leases, and whom they kill',
    async (queue) => {
      await queue.active(A, {}, PAST);
      await queue.active(B, { stalls: 2 }, PAST);
    },
    'reap',
    [10, 2, '', 0],
    [`stalled ${A} 1 1 1`, `stalled ${B} 1 1 3`, `dead ${B} 1 20 lease lapsed 3 times`],
  ],
  [
    'what is cancelled, before it ran and while it runs',
    async (queue) => {
      await queue.pending(A);
      await queue.active(B);
      await queue.dead(C);
    },
    'cancel',
    [0, A, B, C],
    [`cancelled ${A} 0 0 `, `cancelled ${B} 1 0 `],
  ],
  [
    'the death of what was asked to stop',
    (queue) => queue.active(A, { cancel: 1 }),
    'release',
    [A, 1, ''],
    [`dead ${A} 1 9 cancelled`],
  ],
  [
    'a parent that dies of its child',
    async (queue) => {
      await waiting(queue, A, { children: [B] });
      await queue.active(B, { parent: A });
    },
    'retry',
    [0, B, 1, 0, 0, 'boom'],
    [`dead ${B} 1 4 boom`, `dead ${A} 0 28 child q|${B}: boom`],
  ],
  [
    'progress, of the holder alone',
    both,
    'progress',
    [A, 1, '50', B, 9, '60', A, 1, ''],
    [`progress ${A} 1 2 50`, `progress ${A} 1 0 `],
  ],
  ['no release, which is no end', both, 'release', [A, 1, ''], []],
];

describe('what a step tells those that listen', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();
  let queue: Hand;
  let ear: Ear;
  beforeEach(async () => {
    queue = new QueueHand(server.client(), executor.current);
    ear = await Ear.open(server.client(), queue.client, queue.keys.base);
    await ear.listen(['events']);
  });

  it.each(CASES)('are, in one message, %s', async (_what, given, step, call, frames) => {
    await given(queue);
    await queue.client.set(queue.keys.heard, 1, 'PX', 60_000);
    await queue.run(step, call);
    expect(await ear.messages()).toEqual(frames.length === 0 ? [] : [['events', frames.join('\n')]]);
  });

  it.each(CASES)('is nothing of %s while nobody listens', async (_what, given, step, call) => {
    await given(queue);
    await queue.run(step, call);
    expect(await ear.messages()).toEqual([]);
  });

  it('is nothing of a call that is refused', async () => {
    await queue.client.set(queue.keys.heard, 1);
    await queue.active(A);
    await queue.client.set(`${queue.keys.base}hungry`, 'x');
    await expect(queue.run('complete', [0, A, 1, 0, ''])).rejects.toMatchObject({ code: 'EMQTYPE' });
    expect(await ear.messages()).toEqual([]);
  });
});
