import { expect, it } from '@jest/globals';
import { FAR, Hand, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { schedule } from './schedules.js';
import { msUntil } from './server-time.js';
import { describeTransition } from './state-table.js';

const LED = { string: 'p1', expires: true };

describeTransition('lead', (table) => {
  const ledBy = (process: string) => async () => {
    await table.queue.client.set(table.queue.keys.leader, process, 'PX', 600_000);
  };

  table.it('takes a free queue for its time to live, and says that it wants nothing', {
    call: ['p1', 10_000],
    answer: [1, -1, -1, -1, 0, 0, -1],
    changes: { leader: LED },
  });

  table.it('says how long until the next run-at and the next deadline, and that something is claimable', {
    given: async (queue) => {
      await queue.scheduled(id(1), {}, FAR);
      await queue.scheduled(id(2), {}, FAR + 1);
      await queue.active(id(3), {}, FAR + 2);
      await queue.pending(id(4));
    },
    call: ['p1', 10_000],
    answer: [1, msUntil(FAR), msUntil(FAR + 2), -1, 1, 0, -1],
    changes: { leader: LED },
  });

  table.it('says 0 for times that have passed', {
    given: async (queue) => {
      await queue.scheduled(id(1), {}, PAST);
      await queue.active(id(2), {}, PAST);
    },
    call: ['p1', 10_000],
    answer: [1, 0, 0, -1, 0, 0, -1],
    changes: { leader: LED },
  });

  table.it('renews its own leadership', {
    given: ledBy('p1'),
    call: ['p1', 10_000],
    answer: [1, -1, -1, -1, 0, 0, -1],
  });

  table.it("leaves another's leadership alone, and then tells no times", {
    given: async (queue) => {
      await ledBy('p2')();
      await queue.scheduled(id(1), {}, PAST);
      await queue.active(id(2), {}, PAST);
      await queue.pending(id(3));
    },
    call: ['p1', 10_000],
    answer: [0, -1, -1, -1, 1, 0, -1],
  });

  table.it('says that nothing of a paused queue is claimable', {
    given: async (queue) => {
      await queue.pending(id(1));
      await queue.paused();
    },
    call: ['p1', 10_000],
    answer: [1, -1, -1, -1, 0, 0, -1],
    changes: { leader: LED },
  });

  table.it(
    'says the same of one whose limit lets no job run now: it is asked when the time comes, or when a job ends',
    {
      given: async (queue) => {
        await queue.pending(id(1));
        await queue.active(id(2), {}, FAR);
        await queue.client.hset(queue.keys.limits, { concurrency: 1 });
      },
      call: ['p1', 10_000],
      answer: [1, -1, msUntil(FAR), -1, 0, 0, -1],
      changes: { leader: LED },
    },
  );

  table.it('likewise of one that is held back for a time', {
    given: async (queue) => {
      await queue.pending(id(1));
      await queue.client.hset(queue.keys.limits, { until: FAR });
    },
    call: ['p1', 10_000],
    answer: [1, -1, -1, -1, 0, 0, -1],
    changes: { leader: LED },
  });

  table.it('says that a limited queue is claimable when its limit allows a job', {
    given: async (queue) => {
      await queue.pending(id(1));
      await queue.active(id(2), {}, FAR);
      await queue.client.hset(queue.keys.limits, { concurrency: 2, interval: 1, tat: PAST, until: PAST });
    },
    call: ['p1', 10_000],
    answer: [1, -1, msUntil(FAR), -1, 1, 0, -1],
    changes: { leader: LED },
  });

  const owing = async () => {
    await table.queue.client.xadd(table.queue.keys.outbox, '*', 'to', 'r', 'kind', 'land', 'nodes', '');
  };
  table.it('tells the leader that the queue owes something to others', {
    given: owing,
    call: ['p1', 10_000],
    answer: [1, -1, -1, -1, 0, 1, -1],
    changes: { leader: LED },
  });

  table.it('tells nobody else', {
    given: async () => {
      await owing();
      await ledBy('p2')();
    },
    call: ['p1', 10_000],
    answer: [0, -1, -1, -1, 0, 0, -1],
  });

  table.it('says that nothing is owed any more when all of it was dropped', {
    given: async (queue) => {
      const entry = await queue.client.xadd(queue.keys.outbox, '*', 'to', 'r');
      await queue.client.xdel(queue.keys.outbox, entry!);
    },
    call: ['p1', 10_000],
    answer: [1, -1, -1, -1, 0, 0, -1],
    changes: { leader: LED },
  });

  table.it('says how long until the next slot of a repeating schedule', {
    given: async (queue) => {
      await schedule(queue, 'b', FAR + 1);
      await schedule(queue, 'a', FAR);
    },
    call: ['p1', 10_000],
    answer: [1, -1, -1, -1, 0, 0, msUntil(FAR)],
    changes: { leader: LED },
  });

  table.it('says 0 for a slot that has passed', {
    given: (queue) => schedule(queue, 'a', PAST),
    call: ['p1', 10_000],
    answer: [1, -1, -1, -1, 0, 0, 0],
    changes: { leader: LED },
  });

  table.it('says that a paused schedule has no slot', {
    given: (queue) => schedule(queue, 'a', 'paused'),
    call: ['p1', 10_000],
    answer: [1, -1, -1, -1, 0, 0, -1],
    changes: { leader: LED },
  });

  table.it('tells nobody else of slots', {
    given: async (queue) => {
      await ledBy('p2')();
      await schedule(queue, 'a', PAST);
    },
    call: ['p1', 10_000],
    answer: [0, -1, -1, -1, 0, 0, -1],
  });

  const given = () => table.queue.pending(id(1));
  table.refuses('refuses no process, and times to live that are not integers from 1', given, [
    [],
    ['p1'],
    ['', '5'],
    ...each(['p1', '5'], 1, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1']),
  ]);

  it('sets and renews the time to live', async () => {
    const { queue } = table;
    for (const ttl of [600_000, 300_000]) {
      await queue.run('lead', ['p1', ttl]);
      const left = await queue.client.pttl(queue.keys.leader);
      expect(left).toBeGreaterThan(ttl - 60_000);
      expect(left).toBeLessThanOrEqual(ttl);
    }
  });

  it('answers for 100 queues in one call, in their order, and is not stopped by one with a key of another type', async () => {
    const { queue } = table;
    const queues = Array.from({ length: 100 }, (_, n) => new Hand(queue.client, queue.executor, `q${n}`));
    await queues[3]!.pending(id(1));
    await queues[98]!.client.set(queues[98]!.keys.leader, 'p2', 'PX', 600_000);
    await queues[5]!.client.hset(queues[5]!.keys.leader, 'a', 'b');
    await queues[6]!.client.set(queues[6]!.keys.schedule, 'x');
    await queues[7]!.client.set(queues[7]!.keys.pending, 'x');
    await queues[8]!.client.set(queues[8]!.keys.outbox, 'x');
    await queues[9]!.client.set(queues[9]!.keys.schedules, 'x');
    const keys = [...queues.map((one) => one.keys.leader), queues[0]!.keys.base];
    const answer = (await queue.run('lead', ['p1', 10_000], keys)) as number[];
    const led = queues.map((_, n) => answer[7 * n]);
    expect(led).toEqual(queues.map((_, n) => (n === 98 || n === 5 ? 0 : 1)));
    expect(queues.map((_, n) => answer[7 * n + 4])).toEqual(queues.map((_, n) => (n === 3 ? 1 : 0)));
    expect(await queues[99]!.dump()).toEqual({ leader: LED });
  });
});
