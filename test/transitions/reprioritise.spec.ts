import { expect, it } from '@jest/globals';
import { fields, job, zset } from './changes.js';
import { waiting } from './family.js';
import { type Hand, id } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];

describeTransition('reprioritise', (table) => {
  table.it('moves a pending job to its new place, and its row says so', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.pending(B, { priority: 3 });
      await queue.pending(C, { priority: 5 });
    },
    call: [C, '-1', A, '9007199254740991'],
    answer: [1, 1],
    changes: {
      pending: zset([C, -1], [B, 3], [A, Number.MAX_SAFE_INTEGER]),
      [job(C)]: fields({ priority: '-1' }),
      [job(A)]: fields({ priority: '9007199254740991' }),
    },
  });

  table.it('keeps no field for 0', {
    given: (queue) => queue.pending(A, { priority: 7 }),
    call: [A, '0'],
    answer: [1],
    changes: { pending: zset([A, 0]), [job(A)]: fields({ priority: undefined }) },
  });

  table.it('changes nothing for the priority that the job has', {
    given: async (queue) => {
      await queue.pending(A, { priority: 7 });
      await queue.pending(B);
    },
    call: [A, '7', B, '0'],
    answer: [1, 1],
  });

  table.it('takes the last priority of a job named twice', {
    given: (queue) => queue.pending(A),
    call: [A, '7', A, '8'],
    answer: [1, 1],
    changes: { pending: zset([A, 8]), [job(A)]: fields({ priority: '8' }) },
  });

  const elsewhere: [state: string, given: (queue: Hand) => Promise<unknown>][] = [
    ['scheduled', (queue) => queue.scheduled(A)],
    ['active', (queue) => queue.active(A)],
    ['dead', (queue) => queue.dead(A)],
    ['waiting', (queue) => waiting(queue, A, { children: [`r|${B}`] })],
  ];
  for (const [state, given] of elsewhere) {
    table.it(`changes the row alone of a ${state} job`, {
      given,
      call: [A, '-4'],
      answer: [1],
      changes: { [job(A)]: fields({ priority: '-4' }) },
    });
  }

  table.it('moves a job whose lease has lapsed, and its holder may settle it all the same', {
    given: (queue) => queue.lapsed(A),
    call: [A, '4'],
    answer: [1],
    changes: { pending: zset([A, 4]), [job(A)]: fields({ priority: '4' }) },
  });

  table.it('moves a job within its lane', {
    given: async (queue) => {
      await queue.client.hset(queue.keys.row(A), { state: 'pending', attempts: 0, payload: 'p', lane: 'a:b' });
      await queue.client.zadd(`${queue.keys.base}lane:a:b`, 0, A);
      await queue.pending(B);
    },
    call: [A, '4'],
    answer: [1],
    changes: { 'lane:a:b': zset([A, 4]), [job(A)]: fields({ priority: '4' }) },
    reachable: false,
  });

  table.it('adds no member that is not there, and minds no lane of another type', {
    given: async (queue) => {
      const row = { state: 'pending', attempts: 0, payload: 'p' };
      await queue.client.hset(queue.keys.row(A), row);
      await queue.client.hset(queue.keys.row(B), { ...row, lane: 'a' });
      await queue.client.hset(queue.keys.row(C), { ...row, lane: 'b' });
      await queue.client.set(`${queue.keys.base}lane:b`, 'x');
    },
    call: [A, '4', B, '4', C, '4'],
    answer: [1, 1, 1],
    changes: Object.fromEntries([A, B, C].map((jobId) => [job(jobId), fields({ priority: '4' })])),
    reachable: false,
  });

  table.it('leaves a done job as it is', { given: (queue) => queue.done(A), call: [A, '4'], answer: [-2] });

  table.it('answers gone where there is no row, or a key of another type', {
    given: async (queue) => {
      await queue.ghost('pending', A);
      await queue.client.set(queue.keys.row(B), 'x');
    },
    call: [A, '5', B, '5'],
    answer: [0, 0],
    reachable: false,
  });

  const given = () => table.queue.pending(A);
  const good = [A, '5'];
  table.refuses('refuses priorities that are no whole number of 53 bits', given, [
    ...each(good, 1, [...NOT_NUMBERS, ...TOO_LARGE, '-9007199254740992']),
  ]);
  table.refuses('refuses calls that do not add up', given, [[], [A], [...good, B], [...good, B, 'high']]);
  table.refusesTypes(good, ['pending'], given);

  it('changes 1,500 jobs in one call', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await Promise.all(ids.map((jobId) => queue.pending(jobId)));
    const call = ids.flatMap((jobId, n) => [jobId, -n]);
    expect(await queue.run('reprioritise', call)).toEqual(ids.map(() => 1));
    expect(await queue.client.zrange(queue.keys.pending, 0, '2')).toEqual([id(1499), id(1498), id(1497)]);
  });
});
