import { expect, it } from '@jest/globals';
import { counted, fields, gone, job, zset } from './changes.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { inMs } from './server-time.js';
import { ENDED, HOLDERS, STRANGERS } from './settled.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const noted = (text: string) => ({ last_error: text, errors: '1', 'error:1': text });
const MAX = Number.MAX_SAFE_INTEGER;

describeTransition('retry', (table) => {
  for (const { held, epoch, token } of HOLDERS) {
    table.it(`parks a failed job for its delay, for the holder of a claim made ${held}`, {
      given: (queue) => queue.active(A, { lease_epoch: epoch, priority: 6 }),
      call: [0, A, token, 5000, 3, 'boom'],
      answer: ['scheduled'],
      changes: {
        active: gone,
        schedule: zset([A, inMs(5000)]),
        [job(A)]: fields({ state: 'scheduled', ...noted('boom') }),
        'metrics:retried': counted(1),
      },
      hears: [['beat', '5000']],
    });

    table.it(`takes a requeued job out of pending, for the first holder of a claim made ${held}`, {
      given: (queue) => queue.lapsed(A, { lease_epoch: epoch }),
      call: [0, A, token, 5000, 3, 'boom'],
      answer: ['scheduled'],
      changes: {
        pending: gone,
        schedule: zset([A, inMs(5000)]),
        [job(A)]: fields({ state: 'scheduled', lapsed: undefined, ...noted('boom') }),
        'metrics:retried': counted(1),
      },
      hears: [['beat', '5000']],
    });
  }

  table.it('puts a job without a delay back at its own priority, and wakes a hungry process', {
    given: async (queue) => {
      await queue.active(A, { priority: -2 });
      await queue.hungry('crashed', 'p1');
    },
    call: [0, A, 1, 0, 3, 'boom'],
    answer: ['pending'],
    changes: {
      active: gone,
      pending: zset([A, -2]),
      hungry: gone,
      [job(A)]: fields({ state: 'pending', ...noted('boom') }),
      'metrics:retried': counted(1),
    },
    hears: [['w:p1', '']],
  });

  table.it('wakes nobody for a job that is to wait, be it for 1 ms', {
    given: async (queue) => {
      await queue.active(A);
      await queue.hungry('p1');
    },
    call: [0, A, 1, 1, 3, 'boom'],
    answer: ['scheduled'],
    changes: {
      active: gone,
      schedule: zset([A, inMs(1)]),
      [job(A)]: fields({ state: 'scheduled', ...noted('boom') }),
      'metrics:retried': counted(1),
    },
    hears: [['beat', '1']],
  });

  table.it('wakes nobody when something was claimable already', {
    given: async (queue) => {
      await queue.active(A);
      await queue.pending(B);
      await queue.hungry('p1');
    },
    call: [0, A, 1, 0, 3, 'boom'],
    answer: ['pending'],
    changes: {
      active: gone,
      pending: zset([A, 0], [B, 0]),
      [job(A)]: fields({ state: 'pending', ...noted('boom') }),
      'metrics:retried': counted(1),
    },
  });

  table.it('wakes nobody on a paused queue', {
    given: async (queue) => {
      await queue.active(A);
      await queue.paused();
      await queue.hungry('p1');
    },
    call: [0, A, 1, 0, 3, 'boom'],
    answer: ['pending'],
    changes: {
      active: gone,
      pending: zset([A, 0]),
      [job(A)]: fields({ state: 'pending', ...noted('boom') }),
      'metrics:retried': counted(1),
    },
  });

  table.it('puts a requeued job back in pending, no longer open to its first holder', {
    given: (queue) => queue.lapsed(A, { priority: 1 }),
    call: [0, A, 1, 0, 3, 'boom', A, 1, 0, 3, 'again'],
    answer: ['pending', -1],
    changes: {
      [job(A)]: fields({ lapsed: undefined, ...noted('boom') }),
      'metrics:retried': counted(1),
    },
  });

  table.it('buries a job at its cap', {
    given: (queue) => queue.active(A, { attempts: 3 }),
    call: [0, A, 3, 5000, 3, 'boom'],
    answer: ['dead'],
    changes: {
      active: gone,
      dead: zset([A, 0]),
      [job(A)]: fields({ state: 'dead', last_error: 'boom', errors: '3', 'error:3': 'boom' }),
      'metrics:failed': counted(1),
    },
  });

  table.it('does not charge uncharged claims against the cap', {
    given: async (queue) => {
      await queue.active(A, { attempts: 5, uncharged: 3 });
      await queue.active(B, { attempts: 5, uncharged: 2 });
    },
    call: [0, A, 5, 5000, 3, 'a', B, 5, 5000, 3, 'b'],
    answer: ['scheduled', 'dead'],
    changes: {
      active: gone,
      dead: zset([B, 0]),
      schedule: zset([A, inMs(5000)]),
      [job(A)]: fields({ state: 'scheduled', last_error: 'a', errors: '5', 'error:5': 'a' }),
      [job(B)]: fields({ state: 'dead', last_error: 'b', errors: '5', 'error:5': 'b' }),
      'metrics:failed': counted(1),
      'metrics:retried': counted(1),
    },
    hears: [['beat', '5000']],
  });

  table.it('tries again when nothing was charged yet, with a cap of 1', {
    given: (queue) => queue.active(A, { attempts: 2, uncharged: 2 }),
    call: [0, A, 2, 5000, 1, 'boom'],
    answer: ['scheduled'],
    changes: {
      active: gone,
      schedule: zset([A, inMs(5000)]),
      [job(A)]: fields({ state: 'scheduled', last_error: 'boom', errors: '2', 'error:2': 'boom' }),
      'metrics:retried': counted(1),
    },
    hears: [['beat', '5000']],
  });

  table.it('buries at once with max_attempts 0', {
    given: (queue) => queue.active(A, { uncharged: 1 }),
    call: [0, A, 1, 5000, 0, 'discarded'],
    answer: ['dead'],
    changes: {
      active: gone,
      dead: zset([A, 0]),
      [job(A)]: fields({ state: 'dead', ...noted('discarded') }),
      'metrics:failed': counted(1),
    },
  });

  table.it('buries a requeued job, for its first holder, and closes the claim', {
    given: (queue) => queue.lapsed(A),
    call: [0, A, 1, 0, 1, 'boom', A, 1, 0, 1, 'boom'],
    answer: ['dead', -1],
    changes: {
      pending: gone,
      dead: zset([A, 0]),
      [job(A)]: fields({ state: 'dead', lapsed: undefined, ...noted('boom') }),
      'metrics:failed': counted(1),
    },
  });

  table.it('buries a job that was asked to stop, as cancelled', {
    given: async (queue) => {
      await queue.active(A, { cancel: 1 });
      await queue.lapsed(B, { cancel: 1 });
    },
    call: [0, A, 1, 5000, 3, 'aborted', B, 1, 0, 3, 'aborted'],
    answer: ['dead', 'dead'],
    changes: {
      active: gone,
      pending: gone,
      dead: zset([A, 0], [B, 0]),
      [job(A)]: fields({ state: 'dead', ...noted('cancelled') }),
      [job(B)]: fields({ state: 'dead', lapsed: undefined, ...noted('cancelled') }),
      'metrics:failed': counted(2),
    },
  });

  table.it('announces the earliest of several new times, and only when it is earlier than what waits', {
    given: async (queue) => {
      for (const jobId of [A, B]) await queue.active(jobId);
      await queue.scheduled(C, {}, FAR);
    },
    call: [0, A, 1, 90_000, 3, 'a', B, 1, 60_000, 3, 'b'],
    answer: ['scheduled', 'scheduled'],
    changes: {
      active: gone,
      schedule: zset([B, inMs(60_000)], [A, inMs(90_000)], [C, FAR]),
      [job(A)]: fields({ state: 'scheduled', ...noted('a') }),
      [job(B)]: fields({ state: 'scheduled', ...noted('b') }),
      'metrics:retried': counted(2),
    },
    hears: [['beat', '60000']],
  });

  table.it('announces nothing when something earlier waits', {
    given: async (queue) => {
      await queue.active(A);
      await queue.scheduled(B, {}, PAST);
    },
    call: [0, A, 1, 60_000, 3, 'a'],
    answer: ['scheduled'],
    changes: {
      active: gone,
      schedule: zset([B, PAST], [A, inMs(60_000)]),
      [job(A)]: fields({ state: 'scheduled', ...noted('a') }),
      'metrics:retried': counted(1),
    },
  });

  table.it('keeps the longest delay within the numbers that a score holds exactly', {
    given: (queue) => queue.active(A),
    call: [0, A, 1, String(MAX), String(MAX), 'boom'],
    answer: ['scheduled'],
    changes: {
      active: gone,
      schedule: zset([A, MAX]),
      [job(A)]: fields({ state: 'scheduled', ...noted('boom') }),
      'metrics:retried': counted(1),
    },
    hears: [['beat', expect.any(String)]],
  });

  for (const { held, epoch, token } of STRANGERS) {
    table.it(`answers stale to ${held}`, {
      given: async (queue) => {
        await queue.active(A, { lease_epoch: epoch });
        await queue.lapsed(B, { lease_epoch: epoch });
      },
      call: [1, A, token, 0, 0, 'r', B, token, 5, 9, 'r'],
      answer: [-1, -1],
    });
  }

  for (const [state, given] of [...ENDED, ['is done', (queue: Hand) => queue.done(A)] as const]) {
    table.it(`answers stale for a job that ${state}`, {
      given: (queue) => given(queue, A),
      call: [1, A, 1, 0, 0, 'r'],
      answer: [-1],
    });
  }

  table.it('answers gone where there is no row, or a key of another type', {
    given: (queue) => queue.client.set(queue.keys.row(B), 'x'),
    call: [1, A, 1, 0, 0, 'r', B, 1, 0, 0, 'r'],
    answer: [0, 0],
    reachable: false,
  });

  table.it('answers a job named twice as if the second call had come later', {
    given: async (queue) => {
      for (const jobId of [A, B]) await queue.active(jobId);
    },
    call: [0, A, 1, 5000, 3, 'a', A, 1, 0, 3, 'again', B, 1, 0, 3, 'b', B, 1, 0, 3, 'again'],
    answer: ['scheduled', -1, 'pending', -1],
    changes: {
      active: gone,
      pending: zset([B, 0]),
      schedule: zset([A, inMs(5000)]),
      [job(A)]: fields({ state: 'scheduled', ...noted('a') }),
      [job(B)]: fields({ state: 'pending', ...noted('b') }),
      'metrics:retried': counted(2),
    },
    hears: [['beat', '5000']],
  });

  for (const record of [1, 1000]) {
    table.it(`records deaths, and only them, where recording is on (${record})`, {
      given: async (queue) => {
        await queue.active(A);
        await queue.active(B, { cancel: 1 });
        await queue.active(C);
      },
      call: [record, A, 1, 0, 1, 'boom', B, 1, 0, 9, 'b', C, 1, 5000, 9, 'c'],
      answer: ['dead', 'dead', 'scheduled'],
      changes: {
        active: gone,
        dead: zset([A, 0], [B, 0]),
        schedule: zset([C, inMs(5000)]),
        [job(A)]: fields({ state: 'dead', ...noted('boom') }),
        [job(B)]: fields({ state: 'dead', ...noted('cancelled') }),
        [job(C)]: fields({ state: 'scheduled', ...noted('c') }),
        'metrics:failed': counted(2),
        'metrics:retried': counted(1),
        'stream:completions': {
          stream: [
            [expect.any(String), { id: A, outcome: 'dead', attempts: '1', at: inMs(0), error: 'boom' }],
            [expect.any(String), { id: B, outcome: 'dead', attempts: '1', at: inMs(0), error: 'cancelled' }],
          ],
        },
      },
      hears: [['beat', '5000']],
    });
  }

  const given = () => table.queue.active(A);
  const good = ['0', A, '1', '5', '3', 'e'];
  table.refuses('refuses numbers that are not canonical', given, [
    ...[0, 3, 4].flatMap((place) => each(good, place, [...NOT_NUMBERS, ...TOO_LARGE, '-1', '@5'])),
  ]);
  table.refuses('refuses calls that do not add up', given, [
    [],
    ['0'],
    good.slice(0, 5),
    [...good, 'more'],
    [...good, B, '1', '5', '3'],
    [...good, B, '1', 'soon', '3', 'e'],
  ]);
  const types = ['active', 'schedule', 'dead', 'pending', 'hungry', 'metrics:failed', 'metrics:retried'];
  table.refusesTypes([1, A, 1, 5, 3, 'e'], [...types, 'stream:completions'], given);

  it('needs no stream where recording is off', async () => {
    const { queue } = table;
    await queue.active(A);
    await queue.client.set(`${queue.keys.base}stream:completions`, 'x');
    expect(String(await queue.run('retry', [0, A, 1, 0, 0, 'e']))).toBe('dead');
  });

  it('settles 1,500 jobs in one call', async () => {
    const { queue } = table;
    const ids = Array.from({ length: 1_500 }, (_, n) => id(n));
    await Promise.all(ids.map((jobId) => queue.active(jobId)));
    const args = ids.flatMap((jobId, n) => [jobId, 1, [0, 5000, 0][n % 3]!, [3, 3, 0][n % 3]!, 'e']);
    const answer = (await queue.run('retry', [0, ...args])) as Buffer[];
    expect(answer.map(String)).toEqual(ids.map((_, n) => ['pending', 'scheduled', 'dead'][n % 3]));
    const dump = await queue.dump();
    expect(dump.pending).toEqual(zset(...ids.flatMap((x, n): [string, number][] => (n % 3 === 0 ? [[x, 0]] : []))));
    expect(dump.dead).toEqual(zset(...ids.flatMap((x, n): [string, number][] => (n % 3 === 2 ? [[x, 0]] : []))));
    expect(dump.active).toBeUndefined();
  });
});
