import { fields, gone, job, zset } from './changes.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { QUEUE_HELD } from './laned.js';
import { NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { aboutMs, exactlyIn, inMs, msUntil, nowUs } from './server-time.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const limits = (hash: Record<string, unknown>) => ({ limits: { hash } });

describeTransition('limit', (table) => {
  table.it('answers that nothing holds a queue back', { call: [], answer: ['', '', '', 0] });

  table.it('sets limits, keeps those that are not named, and says what holds', {
    given: (queue) => queue.client.hset(queue.keys.limits, { concurrency: 5, burst: 2 }),
    call: ['interval', '0.5', 'burst', 3],
    answer: ['5', '0.5', '3', 0],
    changes: limits({ concurrency: '5', interval: '0.5', burst: '3' }),
  });

  table.it('keeps nothing when the last is taken back', {
    given: (queue) => queue.client.hset(queue.keys.limits, { concurrency: 5, interval: 5, burst: 2, tat: FAR }),
    call: ['concurrency', '', 'interval', '', 'burst', ''],
    answer: ['', '', '', 0],
    changes: { limits: gone },
  });

  table.it('says for how long the rate holds the queue back', {
    given: (queue) => queue.client.hset(queue.keys.limits, { interval: 1000, burst: 3, tat: FAR }),
    call: [],
    answer: ['', '1000', '3', msUntil(FAR - 2000)],
  });

  table.it('lifts a hold, and wakes a process', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.hungry('p1');
      await queue.client.hset(queue.keys.limits, { until: FAR });
      await queue.client.zadd(`${queue.keys.base}lanes:parked`, FAR, QUEUE_HELD);
    },
    call: ['until', ''],
    answer: ['', '', '', 0],
    changes: { limits: gone, 'lanes:parked': gone, hungry: gone },
    hears: [['w:p1', '']],
  });

  table.refuses('refuses what is no setting, and values that it does not take', async () => undefined, [
    ...[['concurrency'], ['tat', '5'], ['until', '5'], ['', '1']],
    ...[...NOT_NUMBERS.filter((text) => text !== ''), ...TOO_LARGE, '0', '-1'].flatMap((text) => [
      ['concurrency', text],
      ['burst', text],
    ]),
    ...['0', '-1', 'nan', 'inf', '1e3', ' 5', '0x10'].map((text) => ['interval', text]),
  ]);
  table.refusesTypes(['concurrency', 5], ['limits', 'pending', 'hungry', 'lanes:parked'], (queue) => queue.pending(C));
});

describeTransition('claim', (table) => {
  const CLAIMED = { state: 'active', attempts: '1', lease_epoch: '-' };
  const three = async (queue: Hand) => {
    for (const jobId of [A, B, C]) await queue.pending(jobId);
  };

  table.it('gives out no more than may run at a time, and registers who wanted more', {
    given: async (queue) => {
      await three(queue);
      await queue.client.hset(queue.keys.limits, { concurrency: 1 });
    },
    call: [30_000, 5, '', 'p1'],
    answer: [A, 'p', 1],
    changes: {
      ...{ pending: zset([B, 0], [C, 0]), active: zset([A, inMs(30_000)]), hungry: zset(['p1', nowUs()]) },
      [job(A)]: fields(CLAIMED),
    },
  });

  table.it('gives out nothing while as many run', {
    given: async (queue) => {
      await queue.active(A);
      await queue.pending(B);
      await queue.client.hset(queue.keys.limits, { concurrency: 1 });
    },
    call: [30_000, 5, '', 'p1'],
    answer: [],
    changes: { hungry: zset(['p1', nowUs()]) },
  });

  table.it('gives out as many as the rate allows, and has somebody woken when it allows more', {
    given: async (queue) => {
      await three(queue);
      await queue.client.hset(queue.keys.limits, { interval: 10_000, burst: 2 });
    },
    call: [30_000, 5],
    answer: [A, 'p', 1, B, 'p', 1],
    changes: {
      ...{ pending: zset([C, 0]), active: zset([A, inMs(30_000)], [B, inMs(30_000)]) },
      ...limits({ interval: '10000', burst: '2', tat: exactlyIn(20_000) }),
      ...{
        'lanes:parked': zset([QUEUE_HELD, exactlyIn(10_000)]),
        [job(A)]: fields(CLAIMED),
        [job(B)]: fields(CLAIMED),
      },
    },
    hears: [['beat', aboutMs('park:', 10_000)]],
  });

  table.it('parks nothing where nothing waits', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.client.hset(queue.keys.limits, { interval: 10_000 });
    },
    call: [30_000],
    answer: [A, 'p', 1],
    changes: {
      ...{ pending: gone, active: zset([A, inMs(30_000)]), [job(A)]: fields(CLAIMED) },
      ...limits({ interval: '10000', tat: exactlyIn(10_000) }),
    },
  });

  table.it('gives out nothing while the queue is held', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.client.hset(queue.keys.limits, { until: FAR });
    },
    call: [30_000, 5],
    answer: [],
    changes: { 'lanes:parked': zset([QUEUE_HELD, FAR]) },
    hears: [['beat', { asymmetricMatch: (said: unknown) => /^park:\d+$/.test(String(said)) }]],
  });

  table.it('forgets a hold that is over, where nothing else limits the queue', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.client.hset(queue.keys.limits, { until: PAST, tat: PAST });
    },
    call: [30_000],
    answer: [A, 'p', 1],
    changes: { pending: gone, active: zset([A, inMs(30_000)]), [job(A)]: fields(CLAIMED), limits: gone },
  });

  table.it('minds no hold that is over', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.client.hset(queue.keys.limits, { until: PAST, tat: PAST, interval: 1 });
    },
    call: [30_000],
    answer: [A, 'p', 1],
    changes: {
      ...{ pending: gone, active: zset([A, inMs(30_000)]), [job(A)]: fields(CLAIMED) },
      ...limits({ until: String(PAST), interval: '1', tat: exactlyIn(1) }),
    },
  });
});

for (const [name, call, answer] of [
  ['complete', [0, A, 1, 0, ''], [1]],
  ['release', [A, 1, '5000'], [1]],
  ['retry', [0, A, 1, 5000, 3, 'e'], ['scheduled']],
] as const) {
  describeTransition(name, (table) => {
    table.it('wakes a process for the place that a limit kept taken', {
      given: async (queue) => {
        await queue.active(A);
        await queue.pending(B);
        await queue.client.hset(queue.keys.limits, { concurrency: 1 });
        await queue.hungry('p1');
      },
      call,
      answer,
      changes: {
        ...{ active: gone, hungry: gone },
        ...(name === 'complete' ? { [job(A)]: gone, 'metrics:completed': { hash: { count: '1' } } } : {}),
        ...(name === 'release' ? { [job(A)]: fields({ state: 'scheduled', uncharged: '1' }) } : {}),
        ...(name === 'retry'
          ? {
              [job(A)]: fields({ state: 'scheduled', last_error: 'e', errors: '1', 'error:1': 'e' }),
              'metrics:retried': { hash: { count: '1' } },
            }
          : {}),
        ...(name === 'complete' ? {} : { schedule: zset([A, inMs(5000)]) }),
      },
      hears:
        name === 'complete'
          ? [['w:p1', '']]
          : [
              ['w:p1', ''],
              ['beat', '5000'],
            ],
    });
  });
}
