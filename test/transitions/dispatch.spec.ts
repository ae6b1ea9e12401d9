import { counted, fields, gone, job, zset } from './changes.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { inMs } from './server-time.js';
import { describeTransition } from './state-table.js';

const [A, B] = [id(1), id(2)];
const RUN = 'f00d.x1';
const lease = inMs(30_000);
const active = (more: Record<string, string> = {}) =>
  fields({ state: 'active', attempts: '1', payload: 'work', lease_epoch: RUN, ...more });
const call = [30_000, RUN, 'p1', 1, A, 'work'] as const;
const none = async () => undefined;

describeTransition('dispatch', (table) => {
  table.it('lands a job under a lease, and tells nobody', {
    given: (queue) => queue.hungry('p1', 'p2'),
    listening: ['p1', 'p2'],
    call,
    answer: 1,
    changes: { active: zset([A, lease]), [job(A)]: active(), 'metrics:enqueued': counted(1) },
  });

  table.it('takes a process that can take no more off the hungry', {
    given: (queue) => queue.hungry('p1'),
    call: [30_000, RUN, 'p1', 0, A, 'work'],
    answer: 1,
    changes: { active: zset([A, lease]), [job(A)]: active(), hungry: gone, 'metrics:enqueued': counted(1) },
  });

  table.it('says of the row what a claim without an epoch says', {
    call: [30_000, '', 'p1', 1, A, 'work'],
    answer: 1,
    changes: { active: zset([A, lease]), [job(A)]: active({ lease_epoch: '-' }), 'metrics:enqueued': counted(1) },
  });

  table.it('keeps what a client says of a job', {
    call: [...call, 'priority', -3, 'max_stalls', 5, 'awaited', 1],
    answer: 1,
    changes: {
      active: zset([A, lease]),
      [job(A)]: active({ priority: '-3', max_stalls: '5', awaited: '1' }),
      'metrics:enqueued': counted(1),
    },
  });

  table.it('leaves out a priority of 0', {
    call: [...call, 'priority', 0, 'max_stalls', 0],
    answer: 1,
    changes: { active: zset([A, lease]), [job(A)]: active({ max_stalls: '0' }), 'metrics:enqueued': counted(1) },
  });

  table.it('goes by the jobs that could run now: not by those that run, are due later, or are dead', {
    given: async (queue) => {
      await queue.active(B);
      await queue.scheduled(id(3), {}, FAR);
      await queue.dead(id(4));
      await queue.active(id(5), {}, PAST);
    },
    call,
    answer: 1,
    changes: {
      active: zset([id(5), PAST], [A, lease], [B, FAR]),
      [job(A)]: active(),
      'metrics:enqueued': counted(5),
    },
  });

  const LEFT_TO_ENQUEUE: [string, (queue: Hand) => Promise<unknown>][] = [
    ['a job waits', (queue) => queue.pending(B)],
    ['the queue is paused', (queue) => queue.paused()],
    ['the id is there', (queue) => queue.scheduled(A)],
    ['the id is there, and done', (queue) => queue.done(A)],
    ['somebody listens for events', (queue) => queue.client.set(`${queue.keys.base}heard`, 1)],
    ['the queue has lanes', (queue) => queue.run('lane', ['lane', 'x', 'weight', 5])],
    ['the queue has a limit', (queue) => queue.run('limit', ['concurrency', 5])],
    ['a job holds a deduplication key', (queue) => queue.run('enqueue', [B, 'p', '500', 1, 'dedup', 'u:k'])],
  ];
  table.it('leaves it to enqueue to say that pending is something else', {
    given: (queue) => queue.client.set(queue.keys.pending, 'x'),
    call,
    answer: 0,
    reachable: false,
  });

  for (const [what, given] of LEFT_TO_ENQUEUE) {
    table.it(`does nothing when ${what}`, { given, call, answer: 0 });
  }

  const CALL = call.map(String);
  table.refuses('what is malformed', none, [
    [],
    call.slice(0, 5),
    [...call, 'priority'],
    ...each(CALL, 0, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1']),
    ...each(CALL, 3, ['', '2', 'yes']),
    ...each(CALL, 4, ['', 'JOB', `${A}x`, 'job00000000001', 'JOB0000000000-']),
    ...each([...CALL, 'priority', '1'], 6, ['', 'state', 'attempts', 'parent', 'lane', 'dedup']),
    ...each([...CALL, 'priority', '1'], 7, ['', '1.5', 'x']),
    ...each([...CALL, 'max_stalls', '1'], 7, ['-1', 'x']),
    [...call, ...Array.from({ length: 9 }, () => ['awaited', '1']).flat()],
  ]);

  table.refusesTypes(call, ['active']);
});
