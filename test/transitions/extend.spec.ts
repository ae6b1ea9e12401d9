import { expect, it } from '@jest/globals';
import { zset } from './changes.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { inMs } from './server-time.js';
import { ENDED, HOLDERS, STRANGERS } from './settled.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];

describeTransition('extend', (table) => {
  for (const { held, epoch, token } of HOLDERS) {
    table.it(`counts the lease anew, for the holder of a claim made ${held}`, {
      given: (queue) => queue.active(A, { lease_epoch: epoch }),
      call: [30_000, A, token],
      answer: [1],
      changes: { active: zset([A, inMs(30_000)]) },
    });

    table.it(`answers that a requeued job is no longer in active, to the first holder of a claim made ${held}`, {
      given: (queue) => queue.lapsed(A, { lease_epoch: epoch }),
      call: [30_000, A, token],
      answer: [-2],
    });
  }

  table.it('extends a lease that is over, as long as no reap has seen it', {
    given: (queue) => queue.active(A, {}, PAST),
    call: [30_000, A, 1],
    answer: [1],
    changes: { active: zset([A, inMs(30_000)]) },
  });

  table.it('extends a job that was asked to stop, and says so', {
    given: async (queue) => {
      await queue.active(A, { cancel: 1 });
      await queue.active(B);
    },
    call: [30_000, A, 1, B, 1, A, 1],
    answer: [2, 1, 2],
    changes: { active: zset([A, inMs(30_000)], [B, inMs(30_000)]) },
  });

  table.it('shortens a lease as well', {
    given: (queue) => queue.active(A, {}, FAR),
    call: [1, A, 1],
    answer: [1],
    changes: { active: zset([A, inMs(1)]) },
  });

  table.it('keeps the longest lease within the numbers that a score holds exactly', {
    given: (queue) => queue.active(A),
    call: [String(Number.MAX_SAFE_INTEGER), A, 1],
    answer: [1],
    changes: { active: zset([A, Number.MAX_SAFE_INTEGER]) },
  });

  for (const { held, epoch, token } of STRANGERS) {
    table.it(`answers stale to ${held}`, {
      given: async (queue) => {
        await queue.active(A, { lease_epoch: epoch });
        await queue.lapsed(B, { lease_epoch: epoch });
      },
      call: [30_000, A, token, B, token],
      answer: [-1, -1],
    });
  }

  for (const [state, given] of [...ENDED, ['is done', (queue: Hand) => queue.done(A)] as const]) {
    table.it(`answers stale for a job that ${state}`, {
      given: (queue) => given(queue, A),
      call: [30_000, A, 1],
      answer: [-1],
    });
  }

  table.it('answers gone where there is no row, or a key of another type, and extends the rest', {
    given: async (queue) => {
      await queue.ghost('active', A);
      await queue.client.set(queue.keys.row(B), 'x');
      await queue.active(C);
    },
    call: [30_000, A, 1, B, 1, C, 1],
    answer: [0, 0, 1],
    changes: { active: zset([A, 0], [C, inMs(30_000)]) },
    reachable: false,
  });

  const given = () => table.queue.active(A);
  const good = ['30000', A, '1'];
  table.refuses('refuses leases that are not integers from 1', given, [
    ...each(good, 0, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1']),
  ]);
  table.refuses('refuses calls that do not add up', given, [[], ['30000'], ['30000', A], [...good, B]]);
  table.refusesTypes(good, ['active'], given);

  it('extends 1,500 leases in one call', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await Promise.all(ids.map((jobId) => queue.active(jobId, {}, PAST)));
    const args = ids.flatMap((jobId) => [jobId, 1]);
    expect(await queue.run('extend', [30_000, ...args])).toEqual(ids.map(() => 1));
    expect(await queue.client.zcard(queue.keys.active)).toBe(1_500);
    expect(await queue.client.zcount(queue.keys.active, PAST, PAST)).toBe(0);
  });
});
