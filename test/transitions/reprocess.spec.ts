import { expect, it } from '@jest/globals';
import { fields, gone, job, zset } from './changes.js';
import { type Hand, id } from './hand.js';
import { each, NOT_NUMBERS } from './malformed.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const REVIVED = { state: 'pending', last_error: undefined };

describeTransition('reprocess', (table) => {
  table.it('puts a dead job back at its own priority; its token, stalls aside, goes on counting', {
    given: (queue) => queue.dead(A, { attempts: 3, priority: 5, stalls: 3, cancel: 1, uncharged: 1, max_stalls: 2 }),
    call: [0, A],
    answer: [1],
    changes: {
      dead: gone,
      pending: zset([A, 5]),
      [job(A)]: fields({ ...REVIVED, stalls: undefined, cancel: undefined }),
    },
  });

  table.it('no longer counts the attempts so far against the cap, when fresh', {
    given: async (queue) => {
      await queue.dead(A, { attempts: 3, uncharged: 1 });
      await queue.dead(B, { attempts: 2 });
    },
    call: [1, A, B],
    answer: [1, 1],
    changes: {
      dead: gone,
      pending: zset([A, 0], [B, 0]),
      [job(A)]: fields({ ...REVIVED, uncharged: '3' }),
      [job(B)]: fields({ ...REVIVED, uncharged: '2' }),
    },
  });

  table.it('closes a claim for good, also where a row still says that it lapsed', {
    given: (queue) => queue.dead(A, { lapsed: 1 }),
    call: [0, A],
    answer: [1],
    changes: { dead: gone, pending: zset([A, 0]), [job(A)]: fields({ ...REVIVED, lapsed: undefined }) },
  });

  table.it('revives a job named twice once', {
    given: (queue) => queue.dead(A),
    call: [0, A, A],
    answer: [1, -2],
    changes: { dead: gone, pending: zset([A, 0]), [job(A)]: fields(REVIVED) },
  });

  const elsewhere: [state: string, given: (queue: Hand) => Promise<unknown>][] = [
    ['pending', (queue) => queue.pending(A)],
    ['lapsed', (queue) => queue.lapsed(A)],
    ['active', (queue) => queue.active(A)],
    ['scheduled', (queue) => queue.scheduled(A)],
    ['done', (queue) => queue.done(A)],
  ];
  for (const [state, given] of elsewhere) {
    table.it(`answers that a ${state} job is not dead, and revives the rest`, {
      given: async (queue) => {
        await given(queue);
        await queue.dead(B);
        if (state !== 'pending' && state !== 'lapsed') await queue.pending(C);
      },
      call: [0, A, B],
      answer: [-2, 1],
      changes: {
        dead: gone,
        pending: state === 'pending' || state === 'lapsed' ? zset([A, 0], [B, 0]) : zset([B, 0], [C, 0]),
        [job(B)]: fields(REVIVED),
      },
    });
  }

  table.it('answers gone where there is no row, or a key of another type', {
    given: async (queue) => {
      await queue.ghost('dead', A);
      await queue.client.set(queue.keys.row(B), 'x');
    },
    call: [0, A, B],
    answer: [0, 0],
    reachable: false,
  });

  table.it('wakes one hungry process when the queue was empty', {
    given: async (queue) => {
      await queue.dead(A);
      await queue.dead(B);
      await queue.hungry('crashed', 'p1', 'p2');
    },
    listening: ['p1', 'p2'],
    call: [0, A, B],
    answer: [1, 1],
    changes: {
      dead: gone,
      pending: zset([A, 0], [B, 0]),
      hungry: zset(['p2', 3]),
      [job(A)]: fields(REVIVED),
      [job(B)]: fields(REVIVED),
    },
    hears: [['w:p1', '']],
  });

  table.it('wakes a hungry process for a single job too', {
    given: async (queue) => {
      await queue.dead(A);
      await queue.hungry('p1');
    },
    call: [0, A],
    answer: [1],
    changes: { dead: gone, pending: zset([A, 0]), hungry: gone, [job(A)]: fields(REVIVED) },
    hears: [['w:p1', '']],
  });

  table.it('wakes nobody when it revived nothing', {
    given: async (queue) => {
      await queue.scheduled(A);
      await queue.hungry('p1');
    },
    call: [0, A],
    answer: [-2],
  });

  table.it('wakes nobody when the queue was not empty', {
    given: async (queue) => {
      await queue.dead(A);
      await queue.pending(B);
      await queue.hungry('p1');
    },
    call: [0, A],
    answer: [1],
    changes: { dead: gone, pending: zset([A, 0], [B, 0]), [job(A)]: fields(REVIVED) },
  });

  table.it('wakes nobody on a paused queue', {
    given: async (queue) => {
      await queue.dead(A);
      await queue.paused();
      await queue.hungry('p1');
    },
    call: [0, A],
    answer: [1],
    changes: { dead: gone, pending: zset([A, 0]), [job(A)]: fields(REVIVED) },
  });

  const given = () => table.queue.dead(A);
  table.refuses('refuses calls that do not add up', given, [
    [],
    ['0'],
    ['1'],
    ...each(['0', A], 0, [...NOT_NUMBERS, '2', '-1']),
  ]);
  table.refusesTypes([0, A], ['dead', 'pending', 'hungry'], given);

  it('revives 1,500 jobs in one call', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await Promise.all(ids.map((jobId) => queue.dead(jobId)));
    expect(await queue.run('reprocess', [0, ...ids])).toEqual(ids.map(() => 1));
    expect(await queue.client.zrange(queue.keys.pending, 0, '-1')).toEqual(ids);
  });
});
