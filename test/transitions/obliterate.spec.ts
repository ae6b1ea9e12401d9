import { expect, it } from '@jest/globals';
import { counted, gone, job, zset } from './changes.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { NEVER, schedule } from './schedules.js';
import { describeTransition } from './state-table.js';

const [A, B, C, D] = [id(1), id(2), id(3), id(4)];
const PAUSED = { string: '1' };

const idle = async (queue: Hand) => {
  await queue.pending(A);
  await queue.scheduled(B);
  await queue.dead(C);
};

describeTransition('obliterate', (table) => {
  table.it('removes every job that does not run, and leaves the queue paused', {
    given: idle,
    call: [0, 1000],
    answer: 3,
    changes: {
      pending: gone,
      schedule: gone,
      dead: gone,
      paused: PAUSED,
      [job(A)]: gone,
      [job(B)]: gone,
      [job(C)]: gone,
      'metrics:removed': counted(3),
    },
  });

  table.it('removes no more than its limit, and counts what it removed, so that a half-done one adds up', {
    given: idle,
    call: [0, 2],
    answer: 2,
    changes: {
      pending: gone,
      schedule: gone,
      paused: PAUSED,
      [job(A)]: gone,
      [job(B)]: gone,
      'metrics:removed': counted(2),
    },
  });

  table.it('removes running jobs when forced', {
    given: async (queue) => {
      await queue.active(A);
      await queue.pending(D);
      await queue.paused();
    },
    call: [1, 1000],
    answer: 2,
    changes: { pending: gone, active: gone, [job(A)]: gone, [job(D)]: gone, 'metrics:removed': counted(2) },
  });

  table.it('refuses to remove running jobs when not forced, and writes nothing', {
    given: async (queue) => {
      await queue.active(A);
      await queue.pending(B);
    },
    call: [0, 1000],
    answer: { code: 'EMQSTATE', message: expect.stringContaining('jobs are running') },
  });

  table.it(
    'removes the metrics, the record and the leader when no job is left, wakes everybody, and leaves the pause',
    {
      given: async (queue) => {
        await queue.paused();
        await queue.hungry('crashed', 'p1', 'p2');
        await queue.client.set(queue.keys.leader, 'p1');
        await queue.client.xadd(`${queue.keys.base}stream:completions`, '*', 'id', A);
        for (const name of ['enqueued', 'completed', 'failed', 'retried', 'stalled']) {
          await queue.client.hset(`${queue.keys.base}metrics:${name}`, 'count', 1);
        }
      },
      listening: ['p1', 'p2'],
      call: [0, 1000],
      answer: 0,
      changes: {
        hungry: gone,
        leader: gone,
        'stream:completions': gone,
        'metrics:enqueued': gone,
        'metrics:completed': gone,
        'metrics:failed': gone,
        'metrics:retried': gone,
        'metrics:stalled': gone,
      },
      hears: [
        ['w:p1', ''],
        ['w:p2', ''],
      ],
    },
  );

  table.it('leaves everybody hungry, the leader and the metrics while jobs are left', {
    given: async (queue) => {
      await idle(queue);
      await queue.hungry('p1');
      await queue.client.set(queue.keys.leader, 'p1');
    },
    call: [0, 3],
    answer: 3,
    changes: {
      pending: gone,
      schedule: gone,
      dead: gone,
      paused: PAUSED,
      [job(A)]: gone,
      [job(B)]: gone,
      [job(C)]: gone,
      'metrics:removed': counted(3),
    },
  });

  table.it('removes repeating schedules first, as many as its limit: they would land more jobs', {
    given: async (queue) => {
      await idle(queue);
      await schedule(queue, 'a', PAST);
      await schedule(queue, 'b', FAR, { last_job: A });
      await schedule(queue, 'paused', 'paused');
    },
    call: [0, 2],
    answer: 2,
    changes: {
      schedules: zset(['paused', NEVER]),
      'schedule:a': gone,
      'schedule:b': gone,
      pending: gone,
      schedule: gone,
      paused: PAUSED,
      [job(A)]: gone,
      [job(B)]: gone,
      'metrics:removed': counted(2),
    },
  });

  table.it('removes no more repeating schedules than its limit, and says that there are more when no job is left', {
    given: async (queue) => {
      await queue.hungry('p1');
      await queue.client.set(queue.keys.leader, 'p1');
      for (const key of ['a', 'b', 'c']) await schedule(queue, key, PAST);
    },
    call: [0, 2],
    answer: -1,
    changes: { schedules: zset(['c', PAST]), 'schedule:a': gone, 'schedule:b': gone, paused: PAUSED },
  });

  table.it('is done when they go with this step', {
    given: async (queue) => {
      for (const key of ['a', 'b']) await schedule(queue, key, PAST);
    },
    call: [0, 2],
    answer: 0,
    changes: { schedules: gone, 'schedule:a': gone, 'schedule:b': gone, paused: PAUSED },
  });

  table.it('leaves the rows of kept results', {
    given: (queue) => queue.done(A),
    call: [0, 1000],
    answer: 0,
    changes: { paused: PAUSED, 'metrics:enqueued': gone, 'metrics:completed': gone },
  });

  table.it('leaves nothing but the pause of a queue that never was', {
    call: [1, 1],
    answer: 0,
    changes: { paused: PAUSED },
  });

  const given = () => table.queue.pending(A);
  table.refuses('refuses flags and limits that are not well-formed', given, [
    [],
    ['0'],
    ...each(['0', '5'], 0, [...NOT_NUMBERS, '2', '-1']),
    ...each(['0', '5'], 1, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1', '1001']),
  ]);
  table.refusesTypes([1, 1000], ['pending', 'schedule', 'dead', 'waiting', 'active', 'schedules', 'metrics:removed']);

  it('removes 1,500 jobs in bounded steps, down to the pause', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await Promise.all(ids.map((jobId, n) => (n % 2 === 0 ? queue.pending(jobId) : queue.dead(jobId))));
    const answers = [];
    for (let n = 0; n < 3; n++) answers.push(await queue.run('obliterate', [0, 1000]));
    expect(answers).toEqual([1000, 500, 0]);
    expect(await queue.dump()).toEqual({ paused: PAUSED });
  });
});
