import { id } from './hand.js';
import { describeTransition } from './state-table.js';

const SETS = ['pending', 'active', 'schedule', 'dead', 'waiting'];
const METRICS = ['enqueued', 'completed', 'removed', 'failed', 'retried', 'stalled'];

describeTransition('counts', (table) => {
  table.it('answers zeros for a queue that never was', { call: [], answer: Array(12).fill(0) });

  table.it('answers the sizes of all sets, the pause, and all counters, in their order', {
    given: async (queue) => {
      for (const [n, set] of SETS.entries()) {
        for (let m = 0; m <= n; m++) await queue.client.zadd(queue.keys.base + set, 0, id(10 * n + m));
      }
      for (const [n, name] of METRICS.entries()) {
        await queue.client.hset(`${queue.keys.base}metrics:${name}`, 'count', 100 + n);
      }
      await queue.paused();
    },
    call: [],
    answer: [1, 2, 3, 4, 5, 1, 100, 101, 102, 103, 104, 105],
    reachable: false,
  });

  table.it('counts each job in one place', {
    given: async (queue) => {
      await queue.pending(id(1));
      await queue.lapsed(id(2));
      await queue.active(id(3));
      await queue.scheduled(id(4));
      await queue.dead(id(5));
      await queue.done(id(6));
    },
    call: [],
    answer: [2, 1, 1, 1, 0, 0, 6, 1, 0, 0, 0, 0],
  });

  table.refusesTypes([], [...SETS, ...METRICS.map((name) => `metrics:${name}`)]);
});
