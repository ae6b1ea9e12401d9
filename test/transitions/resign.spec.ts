import { expect, it } from '@jest/globals';
import { gone } from './changes.js';
import { Hand } from './hand.js';
import { describeTransition } from './state-table.js';

describeTransition('resign', (table) => {
  const ledBy = (process: string) => async () => {
    await table.queue.client.set(table.queue.keys.leader, process, 'PX', 600_000);
  };

  table.it('gives leadership and the place among the hungry back, and tells every process', {
    given: async (queue) => {
      await ledBy('p1')();
      await queue.hungry('p1', 'p2');
    },
    call: ['p1'],
    answer: 1,
    changes: { leader: gone, hungry: { zset: [['p2', 2]] } },
    hears: [['beat', 'lead']],
  });

  table.it('gives back the place among the hungry also when another leads, and tells nobody', {
    given: async (queue) => {
      await ledBy('p2')();
      await queue.hungry('p1');
    },
    call: ['p1'],
    answer: 0,
    changes: { hungry: gone },
  });

  table.it('does nothing where nobody leads', { call: ['p1'], answer: 0 });

  table.it('is not stopped by keys of another type', {
    given: async (queue) => {
      await queue.client.set(`${queue.keys.base}hungry`, 'x');
      await queue.client.hset(queue.keys.leader, 'a', 'b');
    },
    call: ['p1'],
    answer: 0,
  });

  it('resigns from 100 queues in one call, and counts those it led', async () => {
    const { queue } = table;
    const queues = Array.from({ length: 100 }, (_, n) => new Hand(queue.client, queue.executor, `q${n}`));
    const keys = [...queues.map((one) => one.keys.leader), queues[0]!.keys.base];
    await queue.client.set(queues[1]!.keys.leader, 'p2');
    await queue.run('lead', ['p1', 10_000], keys);
    expect(await queue.run('resign', ['p1'], keys)).toBe(99);
    expect(await queue.client.keys('*')).toEqual([queues[1]!.keys.leader]);
  });
});
