import { expect, it } from '@jest/globals';
import { gone, job } from './changes.js';
import { type Hand, id, PAST } from './hand.js';
import { describeTransition } from './state-table.js';

const [A, B, C, D, E, F] = [id(1), id(2), id(3), id(4), id(5), id(6)];

describeTransition('sweep', (table) => {
  table.it('removes rows that are kept for their results', {
    given: async (queue) => {
      await queue.done(A);
      await queue.done(B);
      await queue.done(C);
    },
    call: [A, B],
    answer: 2,
    changes: { [job(A)]: gone, [job(B)]: gone },
  });

  const elsewhere: [state: string, given: (queue: Hand) => Promise<unknown>][] = [
    ['pending', (queue) => queue.pending(A)],
    ['lapsed', (queue) => queue.lapsed(A)],
    ['active', (queue) => queue.active(A, {}, PAST)],
    ['scheduled', (queue) => queue.scheduled(A, {}, PAST)],
    ['dead', (queue) => queue.dead(A)],
  ];
  for (const [state, given] of elsewhere) {
    table.it(`leaves a ${state} job alone, and removes the rest`, {
      given: async (queue) => {
        await given(queue);
        await queue.done(B);
      },
      call: [A, B],
      answer: 1,
      changes: { [job(B)]: gone },
    });
  }

  table.it('passes over ids without a row, and counts a row named twice once', {
    given: (queue) => queue.done(B),
    call: [A, B, B],
    answer: 1,
    changes: { [job(B)]: gone },
  });

  table.it('leaves a key of another type in the place of a row, and removes the rest', {
    given: async (queue) => {
      await queue.client.set(queue.keys.row(A), 'done');
      await queue.done(B);
    },
    call: [A, B],
    answer: 1,
    changes: { [job(B)]: gone },
    reachable: false,
  });

  table.it('touches neither the pause nor whoever is hungry', {
    given: async (queue) => {
      await queue.paused();
      await queue.hungry('p1');
      await queue.done(A);
    },
    call: [A],
    answer: 1,
    changes: { [job(A)]: gone },
  });

  table.it('does nothing when no ids are given', { given: (queue) => queue.done(A), call: [], answer: 0 });

  it('removes 2,500 rows in one call, past what one command takes', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 2_500 }, (_, n) => id(n + 10));
    await Promise.all([...ids, D].map((jobId) => queue.done(jobId)));
    await queue.pending(E);
    expect(await queue.run('sweep', [...ids, E, F])).toBe(2_500);
    expect(Object.keys(await queue.dump()).filter((key) => key.startsWith('job:'))).toEqual([job(D), job(E)]);
  });
});
