import { expect, it } from '@jest/globals';
import { counted, expiring, gone, job, zset } from './changes.js';
import { type Hand, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { inMs } from './server-time.js';
import { ENDED, HOLDERS, STRANGERS } from './settled.js';
import { describeTransition } from './state-table.js';

const [A, B, C, D] = [id(1), id(2), id(3), id(4)];

describeTransition('complete', (table) => {
  for (const { held, epoch, token } of HOLDERS) {
    table.it(`deletes a job for the holder of a claim made ${held}`, {
      given: (queue) => queue.active(A, { lease_epoch: epoch }),
      call: [0, A, token, 0, 'r'],
      answer: [1],
      changes: { active: gone, [job(A)]: gone, 'metrics:completed': counted(1) },
    });

    table.it(`deletes a job that lapsed and was requeued, for the holder of a claim made ${held}`, {
      given: (queue) => queue.lapsed(A, { lease_epoch: epoch }),
      call: [0, A, token, 0, 'r'],
      answer: [1],
      changes: { pending: gone, [job(A)]: gone, 'metrics:completed': counted(1) },
    });
  }

  table.it('completes a job whose lease is over but not reaped', {
    given: (queue) => queue.active(A, {}, PAST),
    call: [0, A, 1, 0, 'r'],
    answer: [1],
    changes: { active: gone, [job(A)]: gone, 'metrics:completed': counted(1) },
  });

  table.it('completes a job that was asked to stop', {
    given: (queue) => queue.active(A, { cancel: 1 }),
    call: [0, A, 1, 0, 'r'],
    answer: [1],
    changes: { active: gone, [job(A)]: gone, 'metrics:completed': counted(1) },
  });

  table.it('keeps the row with its result for keep_ms', {
    given: (queue) =>
      queue.active(A, { cancel: 1, stalls: 1, priority: 4, last_error: 'e', errors: 1, 'error:1': 'e' }),
    call: [0, A, 1, 600_000, 'r'],
    answer: [1],
    changes: {
      active: gone,
      [job(A)]: expiring({ state: 'done', result: 'r', cancel: undefined }),
      'metrics:completed': counted(1),
    },
  });

  table.it('keeps the row of a job that lapsed and was requeued', {
    given: (queue) => queue.lapsed(A),
    call: [0, A, 1, 600_000, 'r'],
    answer: [1],
    changes: {
      pending: gone,
      [job(A)]: expiring({ state: 'done', result: 'r', lapsed: undefined }),
      'metrics:completed': counted(1),
    },
  });

  for (const { held, epoch, token } of HOLDERS) {
    table.it(`answers 1 to a repeat on a kept row by the token of a claim made ${held}, and changes nothing`, {
      given: (queue) => queue.done(A, { lease_epoch: epoch }),
      call: [1, A, token, 5, 'other', A, token, 0, 'other'],
      answer: [1, 1],
    });
  }

  for (const { held, epoch, token } of STRANGERS) {
    table.it(`answers stale to ${held}`, {
      given: async (queue) => {
        await queue.active(A, { lease_epoch: epoch });
        await queue.lapsed(B, { lease_epoch: epoch });
        await queue.done(C, { lease_epoch: epoch });
      },
      call: [1, A, token, 0, 'r', B, token, 5, 'r', C, token, 0, 'r'],
      answer: [-1, -1, -1],
    });
  }

  for (const [state, given] of ENDED) {
    table.it(`answers stale for a job that ${state}`, {
      given: (queue) => given(queue, A),
      call: [1, A, 1, 5, 'r'],
      answer: [-1],
    });
  }

  table.it('answers gone where there is no row, and leaves ghosts to the reaper', {
    given: (queue) => queue.ghost('active', A, PAST),
    call: [1, A, 1, 0, 'r', B, 1, 5, 'r'],
    answer: [0, 0],
    ghosts: [A],
  });

  table.it('answers gone for a key of another type in the place of a row', {
    given: async (queue) => {
      await queue.active(B);
      await queue.client.set(queue.keys.row(A), 'x');
    },
    call: [0, A, 1, 0, 'r', B, 1, 0, 'r'],
    answer: [0, 1],
    changes: { active: gone, [job(B)]: gone, 'metrics:completed': counted(1) },
    reachable: false,
  });

  table.it('settles the good ones of a call among others, each counted once', {
    given: async (queue) => {
      for (const jobId of [A, B, C]) await queue.active(jobId);
      await queue.lapsed(D);
    },
    call: [0, A, 1, 0, 'r', B, 9, 0, 'r', id(9), 1, 0, 'r', C, 1, 600_000, 'r', D, 1, 0, 'r'],
    answer: [1, -1, 0, 1, 1],
    changes: {
      active: zset([B, expect.any(Number)]),
      pending: gone,
      [job(A)]: gone,
      [job(C)]: expiring({ state: 'done', result: 'r' }),
      [job(D)]: gone,
      'metrics:completed': counted(3),
    },
  });

  table.it('answers a job named twice as if the second call had come later', {
    given: async (queue) => {
      for (const jobId of [A, B, C]) await queue.active(jobId);
    },
    call: [
      0,
      A,
      1,
      0,
      'r',
      A,
      1,
      5,
      'r',
      B,
      1,
      600_000,
      'r',
      B,
      1,
      0,
      'late',
      B,
      2,
      0,
      'r',
      C,
      2,
      0,
      'r',
      C,
      1,
      0,
      'r',
    ],
    answer: [1, 0, 1, 1, -1, -1, 1],
    changes: {
      active: gone,
      [job(A)]: gone,
      [job(B)]: expiring({ state: 'done', result: 'r' }),
      [job(C)]: gone,
      'metrics:completed': counted(3),
    },
  });

  const entry = (jobId: string, result: string) => [
    expect.stringMatching(/^\d+-\d+$/),
    { id: jobId, outcome: 'completed', attempts: '1', at: inMs(0), result },
  ];
  for (const record of [1, 1000]) {
    table.it(`records what it settled, and nothing else, where recording is on (${record})`, {
      given: async (queue) => {
        await queue.active(A);
        await queue.active(B);
        await queue.active(C);
      },
      call: [record, A, 1, 0, 'ra', B, 2, 0, 'rb', C, 1, 600_000, 'rc', C, 1, 0, 'again'],
      answer: [1, -1, 1, 1],
      changes: {
        active: zset([B, expect.any(Number)]),
        [job(A)]: gone,
        [job(C)]: expiring({ state: 'done', result: 'rc' }),
        'metrics:completed': counted(2),
        'stream:completions': { stream: [entry(A, 'ra'), entry(C, 'rc')] },
      },
    });
  }

  const given = () => table.queue.active(A);
  const good = ['0', A, '1', '0', 'r'];
  table.refuses('refuses numbers that are not canonical', given, [
    ...each(good, 0, [...NOT_NUMBERS, ...TOO_LARGE, '-1']),
    ...each(good, 3, [...NOT_NUMBERS, ...TOO_LARGE, '-1']),
  ]);
  table.refuses('refuses calls that do not add up', given, [
    [],
    ['0'],
    ['0', A, '1', '0'],
    [...good, B],
    [...good, B, '1', '0'],
    [...good, 'more'],
  ]);
  table.refuses('refuses the whole call for one bad item', given, [[...good, B, '1', 'long', 'r']]);
  table.refusesTypes([1, A, 1, 0, 'r'], ['active', 'metrics:completed', 'stream:completions'], given);
  // touched only by a claim that lapsed
  table.refusesTypes([0, A, 1, 0, 'r'], ['pending'], (queue) => queue.lapsed(A));

  it('needs no stream where recording is off', async () => {
    const { queue } = table;
    await queue.active(A);
    await queue.client.set(`${queue.keys.base}stream:completions`, 'x');
    expect(await queue.run('complete', [0, A, 1, 0, 'r'])).toEqual([1]);
  });

  it('lets a kept row expire after keep_ms', async () => {
    const { queue } = table;
    await queue.active(A);
    await queue.run('complete', [0, A, 1, 600_000, 'r']);
    const left = await queue.client.pttl(queue.keys.row(A));
    expect(left).toBeGreaterThan(540_000);
    expect(left).toBeLessThanOrEqual(600_000);
  });

  it('keeps every byte of a result', async () => {
    const { queue } = table;
    const result = Buffer.from([...Array(256).keys()]);
    await queue.active(A);
    await queue.run('complete', [0, A, 1, 600_000, result]);
    expect(await queue.client.hgetBuffer(queue.keys.row(A), 'result')).toEqual(result);
  });

  it('trims the record to about its length', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 500 }, (_, n) => id(n));
    await activate(queue, ids);
    await queue.run('complete', [100, ...ids.flatMap((jobId) => [jobId, 1, 0, 'r'])]);
    const length = await queue.client.xlen(`${queue.keys.base}stream:completions`);
    expect(length).toBeGreaterThanOrEqual(100);
    expect(length).toBeLessThan(300);
  });

  it('settles 1,500 jobs in one call', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await activate(queue, ids);
    const answer = await queue.run('complete', [0, ...ids.flatMap((jobId) => [jobId, 1, 0, 'r'])]);
    expect(answer).toEqual(ids.map(() => 1));
    expect(await queue.dump()).toEqual({ 'metrics:enqueued': counted(1_500), 'metrics:completed': counted(1_500) });
  });
});

async function activate(queue: Hand, ids: readonly string[]): Promise<void> {
  await Promise.all(ids.map((jobId) => queue.active(jobId)));
}
