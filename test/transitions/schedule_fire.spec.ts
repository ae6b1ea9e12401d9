import { expect, it } from '@jest/globals';
import { counted, fields, job, zset } from './changes.js';
import { FAR, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { rowOf, schedule } from './schedules.js';
import { msUntil } from './server-time.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const LANDED = { hash: { state: 'pending', attempts: '0', payload: 'work' } };

/** One item; `alone` is the rule `overlap: skip`. */
function item(
  parts: { key?: string; rev?: string; slot?: number | string; next?: number; alone?: 0 | 1; id?: string } = {},
) {
  const { key = 'k', rev = 'r', slot = PAST, next = FAR, alone = 0, id = A } = parts;
  return [key, rev, slot, next, alone, id, id === '' ? '' : 'work'].map(String);
}

describeTransition('schedule_fire', (table) => {
  const fired = {
    schedules: zset(['k', FAR]),
    'schedule:k': fields({ last_slot: String(PAST), last_job: A }),
    pending: zset([A, 0]),
    [job(A)]: LANDED,
    'metrics:enqueued': counted(1),
  };

  table.it('lands the job of a slot, and moves the schedule to its next one', {
    given: (queue) => schedule(queue, 'k', PAST),
    call: item(),
    answer: [1, msUntil(FAR)],
    changes: fired,
  });

  table.it('lands it with the priority and the stalls that the schedule says, and wakes a hungry process', {
    given: async (queue) => {
      await schedule(queue, 'k', PAST, { priority: -4, max_stalls: 0 });
      await queue.hungry('crashed', 'p1', 'p2');
    },
    call: item(),
    answer: [1, msUntil(FAR)],
    changes: {
      ...fired,
      pending: zset([A, -4]),
      [job(A)]: { hash: { ...LANDED.hash, priority: '-4', max_stalls: '0' } },
      hungry: zset(['p2', 3]),
    },
    hears: [['w:p1', '']],
  });

  table.it('wakes nobody when the queue was not empty', {
    given: async (queue) => {
      await schedule(queue, 'k', PAST);
      await queue.pending(B);
      await queue.hungry('p1');
    },
    call: item(),
    answer: [1, msUntil(FAR)],
    changes: { ...fired, pending: zset([A, 0], [B, 0]), 'metrics:enqueued': counted(2) },
  });

  table.it('lands on a paused queue, and wakes nobody', {
    given: async (queue) => {
      await schedule(queue, 'k', PAST);
      await queue.paused();
      await queue.hungry('p1');
    },
    call: item(),
    answer: [1, msUntil(FAR)],
    changes: fired,
  });

  table.it('lands one job for a slot that two leaders fire', {
    given: (queue) => schedule(queue, 'k', PAST),
    call: [...item(), ...item({ id: B })],
    answer: [1, 0, msUntil(FAR)],
    changes: fired,
  });

  table.it('fires no slot before the one that the schedule stands at, though none was fired since', {
    given: (queue) => schedule(queue, 'k', PAST),
    call: item({ slot: PAST - 1 }),
    answer: [0, 0],
  });

  table.it('fires no slot that was fired, and moves a schedule on that was set back by hand', {
    given: (queue) => schedule(queue, 'k', PAST, { last_slot: PAST, last_job: B }),
    call: item(),
    answer: [0, msUntil(FAR)],
    changes: { schedules: zset(['k', FAR]) },
  });

  table.it('lands the jobs of several slots, one after the other', {
    given: (queue) => schedule(queue, 'k', PAST),
    call: [...item({ next: PAST + 5 }), ...item({ slot: PAST + 5, id: B })],
    answer: [1, 1, msUntil(FAR)],
    changes: {
      ...fired,
      'schedule:k': fields({ last_slot: String(PAST + 5), last_job: B }),
      pending: zset([A, 0], [B, 0]),
      [job(B)]: LANDED,
      'metrics:enqueued': counted(2),
    },
  });

  table.it('skips slots: fires a later one than it stands at', {
    given: (queue) => schedule(queue, 'k', PAST),
    call: item({ slot: PAST + 7 }),
    answer: [1, msUntil(FAR)],
    changes: { ...fired, 'schedule:k': fields({ last_slot: String(PAST + 7), last_job: A }) },
  });

  table.it('lets a slot pass without a job', {
    given: (queue) => schedule(queue, 'k', PAST, { last_job: B }),
    call: item({ id: '' }),
    answer: [1, msUntil(FAR)],
    changes: { schedules: zset(['k', FAR]), 'schedule:k': fields({ last_slot: String(PAST) }) },
  });

  table.it('fires nothing that is not due by the server clock', {
    given: (queue) => schedule(queue, 'k', FAR - 1),
    call: item({ slot: FAR - 1 }),
    answer: [-2, msUntil(FAR - 1)],
  });

  table.it('fires nothing of a schedule that was declared anew, paused or removed meanwhile', {
    given: async (queue) => {
      await schedule(queue, 'changed', PAST);
      await schedule(queue, 'paused', 'paused');
    },
    call: [...item({ key: 'changed', rev: 'r0' }), ...item({ key: 'paused', id: B }), ...item({ key: 'none', id: C })],
    answer: [-1, -1, -1, 0],
  });

  table.it('drops a schedule whose row somebody has deleted, or overwritten with another type', {
    given: async (queue) => {
      await schedule(queue, 'k', FAR);
      await queue.client.zadd(queue.keys.schedules, PAST, 'ghost', PAST, 'string');
      await queue.client.set(rowOf(queue, 'string'), 'x');
    },
    call: [...item({ key: 'ghost' }), ...item({ key: 'string', id: B })],
    answer: [-1, -1, msUntil(FAR)],
    changes: { schedules: zset(['k', FAR]) },
    reachable: false,
  });

  table.it('leaves a job alone whose id is taken, and moves on', {
    given: async (queue) => {
      await schedule(queue, 'k', PAST);
      await queue.dead(A);
    },
    call: item(),
    answer: [1, msUntil(FAR)],
    changes: { schedules: fired.schedules, 'schedule:k': fired['schedule:k'] },
  });

  const unended = {
    pending: (queue) => queue.pending(B),
    active: (queue) => queue.active(B),
    scheduled: (queue) => queue.scheduled(B),
    'a parent that waits': (queue) => queue.waiting(B, { removing: 1 }),
  } satisfies Record<string, (queue: typeof table.queue) => Promise<void>>;
  for (const [state, given] of Object.entries(unended)) {
    table.it(`alone, lets the slot go while its last job is ${state}, and counts it`, {
      given: async (queue) => {
        await schedule(queue, 'k', PAST, { last_slot: PAST - 1, last_job: B, skipped: 1 });
        await given(queue);
      },
      call: item({ alone: 1 }),
      answer: [2, msUntil(FAR)],
      changes: { schedules: zset(['k', FAR]), 'schedule:k': fields({ last_slot: String(PAST), skipped: '2' }) },
      reachable: state !== 'a parent that waits',
    });
  }

  const ended = {
    gone: async () => undefined,
    dead: (queue) => queue.dead(B),
    done: (queue) => queue.done(B),
    'a key of another type': async (queue) => void (await queue.client.set(queue.keys.row(B), 'x')),
  } satisfies Record<string, (queue: typeof table.queue) => Promise<unknown>>;
  for (const [state, given] of Object.entries(ended)) {
    table.it(`alone, lands a job when its last one is ${state}`, {
      given: async (queue) => {
        await schedule(queue, 'k', PAST, { last_slot: PAST - 1, last_job: B });
        await given(queue);
      },
      call: item({ alone: 1 }),
      answer: [1, msUntil(FAR)],
      changes: {
        ...fired,
        ...(state === 'dead' || state === 'done' ? { 'metrics:enqueued': counted(2) } : {}),
      },
      reachable: state !== 'a key of another type',
    });
  }

  table.it('alone, lands its first job', {
    given: (queue) => schedule(queue, 'k', PAST),
    call: item({ alone: 1 }),
    answer: [1, msUntil(FAR)],
    changes: fired,
  });

  table.it('alone, lands the first of several slots', {
    given: (queue) => schedule(queue, 'k', PAST),
    call: [...item({ next: PAST + 5, alone: 1 }), ...item({ slot: PAST + 5, alone: 1, id: B })],
    answer: [1, 2, msUntil(FAR)],
    changes: { ...fired, 'schedule:k': fields({ last_slot: String(PAST + 5), last_job: A, skipped: '1' }) },
  });

  table.it('without a slot, lands a job now and moves no slot, of a paused one too', {
    given: async (queue) => {
      await schedule(queue, 'k', FAR);
      await schedule(queue, 'paused', 'paused');
    },
    call: [...item({ slot: '' }), ...item({ key: 'paused', slot: '', id: B })],
    answer: [1, 1, msUntil(FAR)],
    changes: {
      'schedule:k': fields({ last_job: A }),
      'schedule:paused': fields({ last_job: B }),
      pending: zset([A, 0], [B, 0]),
      [job(A)]: LANDED,
      [job(B)]: LANDED,
      'metrics:enqueued': counted(2),
    },
  });

  table.it('without a slot and alone, lands nothing while the last job has not ended, and counts no slot', {
    given: async (queue) => {
      await schedule(queue, 'k', FAR, { last_job: B });
      await queue.active(B);
    },
    call: item({ slot: '', alone: 1 }),
    answer: [2, msUntil(FAR)],
  });

  table.it('says that no slot is left when the only schedule is paused', {
    given: (queue) => schedule(queue, 'k', 'paused'),
    call: item({ key: 'none' }),
    answer: [-1, -1],
  });

  table.it('takes what a hand has written to the row for what it can be', {
    given: (queue) =>
      schedule(queue, 'k', PAST, { priority: 'high', max_stalls: '-1', last_slot: 'x', skipped: 'many', last_job: B }),
    call: item(),
    answer: [1, msUntil(FAR)],
    changes: fired,
  });

  const given = () => schedule(table.queue, 'k', PAST);
  table.refuses('refuses calls that do not add up', given, [[], item().slice(0, 6), [...item(), 'k']]);
  table.refuses(
    'refuses slots that are not canonical milliseconds, and next slots that do not come behind them',
    given,
    [
      ...each(item(), 2, [...NOT_NUMBERS.filter((text) => text !== ''), ...TOO_LARGE, '-1']),
      ...each(item(), 3, [...NOT_NUMBERS, ...TOO_LARGE, String(PAST), '0', '-1']),
    ],
  );
  table.refuses('refuses ids that were not minted, and neither slot nor id', given, [
    item({ id: 'JOB1' }),
    item({ id: `${A}0` }),
    item({ slot: '', id: '' }),
    [...item(), ...item({ key: 'b', id: 'x' })],
  ]);
  table.refuses('refuses an alone that is not 0 or 1', given, each(item(), 4, ['', '2', 'true']));
  table.refusesTypes(item(), ['pending', 'schedules', 'hungry', 'metrics:enqueued'], given);

  it('fires 500 schedules in one call', async () => {
    const { queue } = table;
    const numbers = Array.from({ length: 500 }, (_, n) => n);
    await Promise.all(numbers.map((n) => schedule(queue, `k${n}`, PAST)));
    const answer = await queue.run(
      'schedule_fire',
      numbers.flatMap((n) => item({ key: `k${n}`, id: id(n) })),
    );
    expect((answer as number[]).slice(0, -1)).toEqual(numbers.map(() => 1));
    expect(await queue.client.zcard(queue.keys.pending)).toBe(500);
    expect(await queue.client.zcount(queue.keys.schedules, FAR, FAR)).toBe(500);
  });
});
