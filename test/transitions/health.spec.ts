import { expect, it } from '@jest/globals';
import { health } from '../../lib/wire/transitions/index.js';
import { FAR, id, PAST } from './hand.js';
import { inMs, timed } from './server-time.js';
import { describeTransition } from './state-table.js';

const [A, B, C, D] = [id(1), id(2), id(3), id(4)];

describeTransition('health', (table) => {
  table.it('answers nothing but the time for a queue that never was', {
    call: [],
    answer: ['', 0, 0, '', -1, -1, inMs(0)],
  });

  table.it('answers who leads, how many are pending and which is next, and what is due first', {
    given: async (queue) => {
      await queue.pending(A, { priority: 2 });
      await queue.pending(B, { priority: 1 });
      await queue.scheduled(C, {}, FAR);
      await queue.scheduled(D, {}, FAR - 1);
      await queue.active(id(5), {}, FAR);
      await queue.active(id(6), {}, PAST);
      await queue.client.set(queue.keys.leader, 'p1', 'PX', 600_000);
    },
    call: [],
    answer: ['p1', 0, 2, B, FAR - 1, PAST, inMs(0)],
  });

  table.it('looks at a paused queue too', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.paused();
    },
    call: [],
    answer: ['', 1, 1, A, -1, -1, inMs(0)],
  });

  table.refusesTypes([], ['pending', 'schedule', 'active']);

  table.it('refuses a queue whose leader holds another type', {
    given: (queue) => queue.client.hset(queue.keys.leader, 'x', 1),
    call: [],
    answer: { code: 'EMQTYPE', message: expect.stringContaining('leader holds a hash, not a string') },
    reachable: false,
  });

  it('is read as what it means, with what there is none of left out', async () => {
    const { queue } = table;
    const look = () => timed(queue.client, () => queue.executor.run(health, queue.keys, undefined));
    const nothing = { head: undefined, nextRunAt: undefined, nextDeadline: undefined };
    expect(await look()).toEqual({ ...nothing, led: false, paused: false, pending: 0, now: inMs(0) });
    await queue.pending(A);
    await queue.scheduled(B, {}, FAR);
    await queue.active(C, {}, PAST);
    await queue.paused();
    await queue.client.set(queue.keys.leader, 'p1');
    const times = { nextRunAt: FAR, nextDeadline: PAST, now: inMs(0) };
    expect(await look()).toEqual({ led: true, paused: true, pending: 1, head: A, ...times });
  });
});
