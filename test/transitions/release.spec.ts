import { expect, it } from '@jest/globals';
import { counted, fields, gone, job, zset } from './changes.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { inMs, msUntil } from './server-time.js';
import { ENDED, HOLDERS, STRANGERS } from './settled.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const BACK = { state: 'pending', uncharged: '1' };
const CANCELLED = { state: 'dead', last_error: 'cancelled', errors: '1', 'error:1': 'cancelled' };

describeTransition('release', (table) => {
  for (const { held, epoch, token } of HOLDERS) {
    table.it(`puts a job back at its own priority, uncharged, for the holder of a claim made ${held}`, {
      given: (queue) => queue.active(A, { lease_epoch: epoch, priority: 6 }),
      call: [A, token, ''],
      answer: [1],
      changes: { active: gone, pending: zset([A, 6]), [job(A)]: fields(BACK) },
    });

    table.it(`closes the claim of a requeued job, for the first holder of a claim made ${held}`, {
      given: (queue) => queue.lapsed(A, { lease_epoch: epoch, priority: 6 }),
      call: [A, token, '', A, token, ''],
      answer: [1, -1],
      changes: { [job(A)]: fields({ ...BACK, lapsed: undefined }) },
    });
  }

  table.it('counts what is not charged', {
    given: (queue) => queue.active(A, { attempts: 4, uncharged: 2 }),
    call: [A, 4, ''],
    answer: [1],
    changes: { active: gone, pending: zset([A, 0]), [job(A)]: fields({ ...BACK, uncharged: '3' }) },
  });

  table.it('parks a job for a delay, and announces the new earliest time', {
    given: async (queue) => {
      await queue.active(A);
      await queue.lapsed(B);
      await queue.hungry('p1');
    },
    call: [A, 1, '5000', B, 1, `@${FAR}`],
    answer: [1, 1],
    changes: {
      active: gone,
      pending: gone,
      schedule: zset([A, inMs(5000)], [B, FAR]),
      [job(A)]: fields({ state: 'scheduled', uncharged: '1' }),
      [job(B)]: fields({ state: 'scheduled', uncharged: '1', lapsed: undefined }),
    },
    hears: [['beat', '5000']],
  });

  table.it('announces a time on the server clock as what is left until then', {
    given: (queue) => queue.active(A),
    call: [A, 1, `@${FAR}`],
    answer: [1],
    changes: { active: gone, schedule: zset([A, FAR]), [job(A)]: fields({ state: 'scheduled', uncharged: '1' }) },
    hears: [['beat', msUntil(FAR)]],
  });

  table.it('announces nothing when something earlier waits', {
    given: async (queue) => {
      await queue.active(A);
      await queue.scheduled(B, {}, PAST);
    },
    call: [A, 1, '5000'],
    answer: [1],
    changes: {
      active: gone,
      schedule: zset([B, PAST], [A, inMs(5000)]),
      [job(A)]: fields({ state: 'scheduled', uncharged: '1' }),
    },
  });

  for (const delay of ['0', `@${PAST}`]) {
    table.it(`takes the delay ${delay}, which is not in the future, for now`, {
      given: (queue) => queue.active(A),
      call: [A, 1, delay],
      answer: [1],
      changes: { active: gone, pending: zset([A, 0]), [job(A)]: fields(BACK) },
    });
  }

  table.it('wakes a hungry process when the queue was empty', {
    given: async (queue) => {
      await queue.active(A);
      await queue.active(B);
      await queue.hungry('crashed', 'p1', 'p2');
    },
    listening: ['p1', 'p2'],
    call: [A, 1, '', B, 1, ''],
    answer: [1, 1],
    changes: {
      active: gone,
      pending: zset([A, 0], [B, 0]),
      hungry: zset(['p2', 3]),
      [job(A)]: fields(BACK),
      [job(B)]: fields(BACK),
    },
    hears: [['w:p1', '']],
  });

  table.it('wakes a hungry process for a single job too', {
    given: async (queue) => {
      await queue.active(A);
      await queue.hungry('p1');
    },
    call: [A, 1, ''],
    answer: [1],
    changes: { active: gone, pending: zset([A, 0]), hungry: gone, [job(A)]: fields(BACK) },
    hears: [['w:p1', '']],
  });

  table.it('wakes nobody when all it released has to wait, or was to stop', {
    given: async (queue) => {
      await queue.active(A);
      await queue.active(B, { cancel: 1 });
      await queue.hungry('p1');
    },
    call: [A, 1, '5000', B, 1, ''],
    answer: [1, 1],
    changes: {
      active: gone,
      schedule: zset([A, inMs(5000)]),
      dead: zset([B, 0]),
      [job(A)]: fields({ state: 'scheduled', uncharged: '1' }),
      [job(B)]: fields(CANCELLED),
      'metrics:failed': counted(1),
    },
    hears: [['beat', '5000']],
  });

  table.it('wakes nobody on a paused queue', {
    given: async (queue) => {
      await queue.active(A);
      await queue.paused();
      await queue.hungry('p1');
    },
    call: [A, 1, ''],
    answer: [1],
    changes: { active: gone, pending: zset([A, 0]), [job(A)]: fields(BACK) },
  });

  table.it('wakes nobody when something was claimable already', {
    given: async (queue) => {
      await queue.active(A);
      await queue.pending(B);
      await queue.hungry('p1');
    },
    call: [A, 1, ''],
    answer: [1],
    changes: { active: gone, pending: zset([A, 0], [B, 0]), [job(A)]: fields(BACK) },
  });

  table.it('buries a job that was asked to stop, and wakes nobody for it', {
    given: async (queue) => {
      await queue.active(A, { cancel: 1 });
      await queue.lapsed(B, { cancel: 1 });
      await queue.hungry('p1');
    },
    call: [A, 1, '', B, 1, '5000'],
    answer: [1, 1],
    changes: {
      active: gone,
      pending: gone,
      dead: zset([A, 0], [B, 0]),
      [job(A)]: fields(CANCELLED),
      [job(B)]: fields({ ...CANCELLED, lapsed: undefined }),
      'metrics:failed': counted(2),
    },
  });

  for (const { held, epoch, token } of STRANGERS) {
    table.it(`answers stale to ${held}`, {
      given: async (queue) => {
        await queue.active(A, { lease_epoch: epoch });
        await queue.lapsed(B, { lease_epoch: epoch });
      },
      call: [A, token, '', B, token, '5'],
      answer: [-1, -1],
    });
  }

  for (const [state, given] of [...ENDED, ['is done', (queue: Hand) => queue.done(A)] as const]) {
    table.it(`answers stale for a job that ${state}`, {
      given: (queue) => given(queue, A),
      call: [A, 1, ''],
      answer: [-1],
    });
  }

  table.it('answers gone where there is no row, or a key of another type, and releases the rest', {
    given: async (queue) => {
      await queue.client.set(queue.keys.row(B), 'x');
      await queue.active(C);
    },
    call: [A, 1, '', B, 1, '', C, 1, ''],
    answer: [0, 0, 1],
    changes: { active: gone, pending: zset([C, 0]), [job(C)]: fields(BACK) },
    reachable: false,
  });

  const given = () => table.queue.active(A);
  const good = [A, '1', '5'];
  table.refuses('refuses delays that are not canonical milliseconds', given, [
    ...each(good, 2, [...NOT_NUMBERS.filter((text) => text !== ''), ...TOO_LARGE, '-1', '@', '@-1', '@1e3']),
  ]);
  table.refuses('refuses calls that do not add up', given, [
    [],
    [A],
    [A, '1'],
    [...good, B],
    [...good, B, '1', 'soon'],
  ]);
  table.refusesTypes(good, ['active', 'pending', 'schedule', 'dead', 'hungry', 'metrics:failed'], given);

  it('releases 1,500 jobs in one call', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await Promise.all(ids.map((jobId) => queue.active(jobId)));
    expect(
      await queue.run(
        'release',
        ids.flatMap((jobId) => [jobId, 1, '']),
      ),
    ).toEqual(ids.map(() => 1));
    const dump = await queue.dump();
    expect(dump.pending).toEqual(zset(...ids.map((jobId): [string, number] => [jobId, 0])));
    expect(dump.active).toBeUndefined();
  });
});
