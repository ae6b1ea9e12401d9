import { expect, it } from '@jest/globals';
import { counted, fields, gone, job, zset } from './changes.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { inMs, nowUs } from './server-time.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const CLAIMED = { state: 'active', attempts: '1', lease_epoch: '-' };
const RUN = 'f00d.x1';
const lease = inMs(30_000);

describeTransition('claim', (table) => {
  table.it('gives out the head under a lease', {
    given: (queue) => queue.pending(A, { payload: 'work' }),
    call: [30_000],
    answer: [A, 'work', 1],
    changes: { pending: gone, active: zset([A, lease]), [job(A)]: fields(CLAIMED) },
  });

  table.it('takes lowest priority first, then lowest id, and one without a count', {
    given: async (queue) => {
      await queue.pending(A, { priority: 5 });
      await queue.pending(C);
      await queue.pending(B);
    },
    call: [30_000],
    answer: [B, 'p', 1],
    changes: { pending: zset([C, 0], [A, 5]), active: zset([B, lease]), [job(B)]: fields(CLAIMED) },
  });

  table.it('gives out as many as are asked for, all under one deadline', {
    given: async (queue) => {
      await queue.pending(A, { priority: 5 });
      await queue.pending(B, { attempts: 7 });
      await queue.pending(C);
    },
    call: [30_000, 2],
    answer: [B, 'p', 8, C, 'p', 1],
    changes: {
      pending: zset([A, 5]),
      active: zset([B, lease], [C, lease]),
      [job(B)]: fields({ ...CLAIMED, attempts: '8' }),
      [job(C)]: fields(CLAIMED),
    },
  });

  table.it('stores the epoch, and then answers the uncharged claims too', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.pending(B, { attempts: 4, uncharged: 3, lease_epoch: 'old.1' });
    },
    call: [30_000, 5, RUN],
    answer: [A, 'p', 1, 0, B, 'p', 5, 3],
    changes: {
      pending: gone,
      active: zset([A, lease], [B, lease]),
      [job(A)]: fields({ ...CLAIMED, lease_epoch: RUN }),
      [job(B)]: fields({ state: 'active', attempts: '5', lease_epoch: RUN }),
    },
  });

  table.it('takes over a lapsed job, whose former token is then outgrown', {
    given: (queue) => queue.lapsed(A),
    call: [30_000, 1],
    answer: [A, 'p', 2],
    changes: { pending: gone, active: zset([A, lease]), [job(A)]: fields({ ...CLAIMED, attempts: '2' }) },
  });

  table.it('keeps the longest lease within the numbers that a score holds exactly', {
    given: (queue) => queue.pending(A),
    call: [String(Number.MAX_SAFE_INTEGER)],
    answer: [A, 'p', 1],
    changes: { pending: gone, active: zset([A, Number.MAX_SAFE_INTEGER]), [job(A)]: fields(CLAIMED) },
  });

  table.it('answers nothing, and writes nothing, on an empty queue', { call: [30_000], answer: [] });

  table.it('registers the process as hungry on an empty queue', {
    given: (queue) => queue.hungry('p2'),
    call: [30_000, 3, RUN, 'p1'],
    answer: [],
    changes: { hungry: zset(['p2', 1], ['p1', nowUs()]) },
  });

  table.it('registers the process as hungry when it got fewer than it asked for', {
    given: (queue) => queue.pending(A),
    call: [30_000, 3, '', 'p1'],
    answer: [A, 'p', 1],
    changes: { pending: gone, active: zset([A, lease]), [job(A)]: fields(CLAIMED), hungry: zset(['p1', nowUs()]) },
  });

  table.it('does not register a process that got all it asked for', {
    given: (queue) => queue.pending(A),
    call: [30_000, 1, '', 'p1'],
    answer: [A, 'p', 1],
    changes: { pending: gone, active: zset([A, lease]), [job(A)]: fields(CLAIMED) },
  });

  table.it('wakes the next hungry process when jobs remain', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.pending(B);
      await queue.hungry('crashed', 'p2', 'p3');
    },
    listening: ['p1', 'p2', 'p3'],
    call: [30_000, 1, '', 'p1'],
    answer: [A, 'p', 1],
    changes: {
      pending: zset([B, 0]),
      active: zset([A, lease]),
      [job(A)]: fields(CLAIMED),
      hungry: zset(['p3', 3]),
    },
    hears: [['w:p2', '']],
  });

  table.it('wakes nobody when nothing remains', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.hungry('p1');
    },
    call: [30_000, 1],
    answer: [A, 'p', 1],
    changes: { pending: gone, active: zset([A, lease]), [job(A)]: fields(CLAIMED) },
  });

  table.it('gives out nothing of a paused queue, and registers the process as hungry', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.paused();
      await queue.hungry('p1', 'p2');
    },
    listening: ['p1', 'p2'],
    call: [30_000, 1, RUN, 'p1'],
    answer: [],
    changes: { hungry: zset(['p2', 2], ['p1', nowUs()]) },
  });

  table.it('writes nothing to a paused queue for a single look', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.paused();
      await queue.hungry('p1');
    },
    call: [30_000],
    answer: [],
  });

  table.it('drops a ghost at the head and answers nothing, when no count is given', {
    given: async (queue) => {
      await queue.ghost('pending', A);
      await queue.pending(B);
    },
    call: [30_000],
    answer: [],
    changes: { pending: zset([B, 0]) },
    ghosts: [A],
  });

  table.it('drops ghosts and tries the next, when a count is given', {
    given: async (queue) => {
      await queue.ghost('pending', A);
      await queue.pending(B);
      await queue.ghost('pending', C);
    },
    call: [30_000, 1],
    answer: [B, 'p', 1],
    changes: { pending: zset([C, 0]), active: zset([B, lease]), [job(B)]: fields(CLAIMED) },
    ghosts: [A, C],
  });

  table.it('takes a key of another type in the place of a row for a ghost', {
    given: async (queue) => {
      await queue.ghost('pending', A);
      await queue.client.set(queue.keys.row(A), 'x');
      await queue.pending(B);
    },
    call: [30_000, 2],
    answer: [B, 'p', 1],
    changes: { pending: gone, active: zset([B, lease]), [job(B)]: fields(CLAIMED) },
    reachable: false,
  });

  const ghosts = (count: number) => async (queue: Hand) => {
    for (let n = 0; n < count; n++) await queue.ghost('pending', id(n), -1);
    await queue.pending(id(999));
  };
  table.it('tries on behind 99 ghosts', {
    given: ghosts(99),
    call: [30_000, 1],
    answer: [id(999), 'p', 1],
    changes: { pending: gone, active: zset([id(999), lease]), [job(id(999))]: fields(CLAIMED) },
    ghosts: Array.from({ length: 99 }, (_, n) => id(n)),
  });
  table.it('gives up after 100 ghosts', {
    given: ghosts(100),
    call: [30_000, 1],
    answer: [],
    changes: { pending: zset([id(999), 0]) },
    ghosts: Array.from({ length: 100 }, (_, n) => id(n)),
  });
  table.it('wakes somebody for the jobs behind when it gives up, be it the process that asked', {
    given: ghosts(100),
    call: [30_000, 1, RUN, 'p1'],
    answer: [],
    changes: { pending: zset([id(999), 0]) },
    hears: [['w:p1', '']],
    ghosts: Array.from({ length: 100 }, (_, n) => id(n)),
  });
  table.it('leaves the process that asked hungry when there was nothing but ghosts', {
    given: async (queue) => {
      for (let n = 0; n < 100; n++) await queue.ghost('pending', id(n));
    },
    call: [30_000, 1, RUN, 'p1'],
    answer: [],
    changes: { pending: gone, hungry: zset(['p1', nowUs()]) },
    ghosts: Array.from({ length: 100 }, (_, n) => id(n)),
  });

  const large = 'x'.repeat(1_500_000);
  const largeOnes = (count: number) => async (queue: Hand) => {
    for (let n = 0; n < count; n++) await queue.pending(id(n), { payload: large });
  };
  /** Of so many, the two that fit are given out. */
  const twoGone = (count: number) => ({
    pending: zset(...Array.from({ length: count - 2 }, (_, n): [string, number] => [id(n + 2), 0])),
    active: zset([id(0), lease], [id(1), lease]),
    [job(id(0))]: fields(CLAIMED),
    [job(id(1))]: fields(CLAIMED),
  });
  table.it('ends when 4 MB of payloads are given out, and wakes the next process', {
    given: async (queue) => {
      await largeOnes(9)(queue);
      await queue.hungry('p2');
    },
    listening: ['p1', 'p2'],
    call: [30_000, 8, '', 'p1'],
    answer: [id(0), large, 1, id(1), large, 1],
    changes: { ...twoGone(9), hungry: zset(['p1', nowUs()]) },
    hears: [['w:p2', '']],
  });
  table.it('wakes the process that asked, when no other is hungry, for what it could have been given', {
    given: largeOnes(8),
    listening: ['p1'],
    call: [30_000, 8, '', 'p1'],
    answer: [id(0), large, 1, id(1), large, 1],
    changes: twoGone(8),
    hears: [['w:p1', '']],
  });
  table.it('gives out one job however large it is', {
    given: async (queue) => {
      await queue.pending(A, { payload: 'x'.repeat(5_000_000) });
      for (let n = 0; n < 8; n++) await queue.pending(id(100 + n));
    },
    call: [30_000, 8],
    answer: [A, 'x'.repeat(5_000_000), 1],
    changes: {
      pending: zset(...Array.from({ length: 8 }, (_, n): [string, number] => [id(100 + n), 0])),
      active: zset([A, lease]),
      [job(A)]: fields(CLAIMED),
    },
  });

  const given = () => table.queue.pending(A);
  const good = ['30000', '1', RUN, 'p1'];
  table.refuses('refuses leases and counts that are not integers within bounds', given, [
    [],
    ...each(good, 0, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1']),
    ...each(good, 1, [...NOT_NUMBERS.filter((text) => text !== ''), ...TOO_LARGE, '0', '-1', '501']),
  ]);
  table.refusesTypes([30_000, 1, RUN, 'p1'], ['pending', 'active', 'hungry'], given);

  it('keeps every byte of a payload', async () => {
    const { queue } = table;
    const payload = Buffer.from([...Array(256).keys(), 0, 0]);
    await queue.run('enqueue', [A, payload, '', 0, B, '', '', 0]);
    const reply = (await queue.run('claim', [30_000, 2])) as Buffer[];
    expect([reply[1], reply[4]]).toEqual([payload, Buffer.alloc(0)]);
  });

  it('gives out 500 jobs in one call, and the rest in the next', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 700 }, (_, n) => id(n));
    await queue.run(
      'enqueue',
      ids.flatMap((jobId) => [jobId, 'p', '', 0]),
    );
    expect(await queue.run('claim', [30_000, 500, RUN])).toHaveLength(2_000);
    expect(await queue.client.zcard(queue.keys.active)).toBe(500);
    expect(await queue.client.zrange(queue.keys.pending, 0, '-1')).toEqual(ids.slice(500));
    expect(await queue.run('claim', [30_000, 500, RUN])).toHaveLength(800);
    expect((await queue.dump())['metrics:enqueued']).toEqual(counted(700));
  });

  it('gives a token out once, however many ask at the same moment', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 50 }, (_, n) => id(n));
    await queue.run(
      'enqueue',
      ids.flatMap((jobId) => [jobId, 'p', `@${PAST}`, 0]),
    );
    const replies = await Promise.all(Array.from({ length: 100 }, () => queue.run('claim', [FAR, 1])));
    const claimed = (replies as Buffer[][]).flatMap((reply) => (reply.length > 0 ? String(reply[0]) : []));
    expect(claimed.sort()).toEqual(ids);
  });
});
