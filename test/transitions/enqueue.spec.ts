import { expect, it } from '@jest/globals';
import { counted, fields, job, zset } from './changes.js';
import { FAR, id, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { inMs, msUntil } from './server-time.js';
import { describeTransition } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const LANDED = { state: 'pending', attempts: '0', payload: 'p' };
const SCHEDULED = { ...LANDED, state: 'scheduled' };
const MAX = Number.MAX_SAFE_INTEGER;

describeTransition('enqueue', (table) => {
  table.it('lands a job in pending', {
    call: [A, 'p', '', 0],
    answer: [1],
    changes: { pending: zset([A, 0]), [job(A)]: fields(LANDED), 'metrics:enqueued': counted(1) },
  });

  table.it('lands a job with a delay in schedule, and announces the new earliest time', {
    call: [A, 'p', '5000', 0],
    answer: [1],
    changes: { schedule: zset([A, inMs(5000)]), [job(A)]: fields(SCHEDULED), 'metrics:enqueued': counted(1) },
    hears: [['beat', '5000']],
  });

  table.it('lands a job at a time on the server clock', {
    call: [A, 'p', `@${FAR}`, 0],
    answer: [1],
    changes: { schedule: zset([A, FAR]), [job(A)]: fields(SCHEDULED), 'metrics:enqueued': counted(1) },
    hears: [['beat', msUntil(FAR)]],
  });

  for (const delay of ['0', `@${PAST}`, '@0']) {
    table.it(`takes the delay ${delay}, which is not in the future, for now`, {
      call: [A, 'p', delay, 0],
      answer: [1],
      changes: { pending: zset([A, 0]), [job(A)]: fields(LANDED), 'metrics:enqueued': counted(1) },
    });
  }

  table.it('keeps the longest delay within the numbers that a score holds exactly', {
    call: [A, 'p', String(MAX), 0, B, 'p', `@${MAX}`, 0],
    answer: [1, 1],
    changes: {
      schedule: zset([A, MAX], [B, MAX]),
      [job(A)]: fields(SCHEDULED),
      [job(B)]: fields(SCHEDULED),
      'metrics:enqueued': counted(2),
    },
    hears: [['beat', expect.any(String)]],
  });

  table.it('announces nothing when an earlier job waits already, and the new time when it is earlier', {
    given: (queue) => queue.scheduled(A, {}, FAR),
    call: [B, 'p', `@${FAR + 1}`, 0],
    answer: [1],
    changes: {
      schedule: zset([A, FAR], [B, FAR + 1]),
      [job(B)]: fields(SCHEDULED),
      'metrics:enqueued': counted(2),
    },
  });

  table.it('announces the earliest of several new times, once', {
    given: (queue) => queue.scheduled(A, {}, FAR),
    call: [B, 'p', '90000', 0, C, 'p', '60000', 0],
    answer: [1, 1],
    changes: {
      schedule: zset([C, inMs(60000)], [B, inMs(90000)], [A, FAR]),
      [job(B)]: fields(SCHEDULED),
      [job(C)]: fields(SCHEDULED),
      'metrics:enqueued': counted(3),
    },
    hears: [['beat', '60000']],
  });

  table.it('orders by priority, then by id, also when ids land out of order', {
    call: [C, 'p', '', 0, B, 'p', '', 1, 'priority', '-1', A, 'p', '', 0],
    answer: [1, 1, 1],
    changes: {
      pending: zset([B, -1], [A, 0], [C, 0]),
      [job(A)]: fields(LANDED),
      [job(B)]: fields({ ...LANDED, priority: '-1' }),
      [job(C)]: fields(LANDED),
      'metrics:enqueued': counted(3),
    },
  });

  table.it('loses no digit of the largest priorities, and stores none that is 0', {
    call: [
      A,
      'p',
      '',
      1,
      'priority',
      String(MAX),
      B,
      'p',
      '',
      1,
      'priority',
      String(-MAX),
      C,
      'p',
      '',
      1,
      'priority',
      '0',
    ],
    answer: [1, 1, 1],
    changes: {
      pending: zset([B, -MAX], [C, 0], [A, MAX]),
      [job(A)]: fields({ ...LANDED, priority: String(MAX) }),
      [job(B)]: fields({ ...LANDED, priority: String(-MAX) }),
      [job(C)]: fields(LANDED),
      'metrics:enqueued': counted(3),
    },
  });

  table.it('stores the fields a client may set, of a field named twice the last', {
    call: [A, 'p', '7', 3, 'max_stalls', '0', 'priority', '4', 'max_stalls', '9'],
    answer: [1],
    changes: {
      schedule: zset([A, inMs(7)]),
      [job(A)]: fields({ ...SCHEDULED, priority: '4', max_stalls: '9' }),
      'metrics:enqueued': counted(1),
    },
    hears: [['beat', '7']],
  });

  table.it('answers an id that exists with itself and its state, and changes nothing of it', {
    given: async (queue) => {
      await queue.pending(A, { payload: 'first', priority: 3 });
      await queue.active(B);
      await queue.done(C);
    },
    call: [A, 'other', '', 0, B, 'other', '500', 0, C, 'other', '', 1, 'priority', '5'],
    answer: [`${A} pending`, `${B} active`, `${C} done`],
  });

  table.it('lands the new ones of a call in which others exist', {
    given: (queue) => queue.dead(A),
    call: [A, 'p', '', 0, B, 'p', '', 0],
    answer: [`${A} dead`, 1],
    changes: { pending: zset([B, 0]), [job(B)]: fields(LANDED), 'metrics:enqueued': counted(2) },
  });

  table.it('lands an id that is named twice in a call once, as it was named first', {
    call: [A, 'p', '', 0, A, 'other', '900', 1, 'priority', '5'],
    answer: [1, `${A} pending`],
    changes: { pending: zset([A, 0]), [job(A)]: fields(LANDED), 'metrics:enqueued': counted(1) },
  });

  table.it('wakes one process, the one that has been hungry longest, when the queue was empty', {
    given: (queue) => queue.hungry('p1', 'p2'),
    listening: ['p1', 'p2'],
    call: [A, 'p', '', 0, B, 'p', '', 0],
    answer: [1, 1],
    changes: {
      hungry: zset(['p2', 2]),
      pending: zset([A, 0], [B, 0]),
      [job(A)]: fields(LANDED),
      [job(B)]: fields(LANDED),
      'metrics:enqueued': counted(2),
    },
    hears: [['w:p1', '']],
  });

  table.it('passes over hungry processes that nobody listens for any more', {
    given: (queue) => queue.hungry('crashed', 'also-crashed', 'p1', 'p2'),
    listening: ['p1', 'p2'],
    call: [A, 'p', '', 0],
    answer: [1],
    changes: {
      hungry: zset(['p2', 4]),
      pending: zset([A, 0]),
      [job(A)]: fields(LANDED),
      'metrics:enqueued': counted(1),
    },
    hears: [['w:p1', '']],
  });

  table.it('wakes nobody when the queue was not empty', {
    given: async (queue) => {
      await queue.pending(A);
      await queue.hungry('p1');
    },
    call: [B, 'p', '', 0],
    answer: [1],
    changes: { pending: zset([A, 0], [B, 0]), [job(B)]: fields(LANDED), 'metrics:enqueued': counted(2) },
  });

  table.it('wakes nobody when it is paused', {
    given: async (queue) => {
      await queue.paused();
      await queue.hungry('p1');
    },
    call: [A, 'p', '', 0],
    answer: [1],
    changes: { pending: zset([A, 0]), [job(A)]: fields(LANDED), 'metrics:enqueued': counted(1) },
  });

  table.it('wakes nobody for a job that is to wait', {
    given: (queue) => queue.hungry('p1'),
    call: [A, 'p', '9000', 0],
    answer: [1],
    changes: { schedule: zset([A, inMs(9000)]), [job(A)]: fields(SCHEDULED), 'metrics:enqueued': counted(1) },
    hears: [['beat', '9000']],
  });

  const given = () => table.queue.scheduled(C);
  const good = [A, 'p', '5', '0'];
  table.refuses('refuses ids that were not minted', given, [
    ...['', 'pending', 'JOB', 'job00000000001', `${A}0`, ` ${A}`, 'JOB0000000000-1', `${A}\n`, 'JOB0000000000é'].map(
      (bad) => [bad, 'p', '', '0'],
    ),
  ]);
  table.refuses('refuses delays that are not canonical milliseconds', given, [
    ...each(
      good,
      2,
      NOT_NUMBERS.filter((text) => text !== ''),
    ),
    ...each(good, 2, [...TOO_LARGE, '-1', '@', '@-1', '@+5', '@1e3', '@@5', '@ 5', '5@']),
    ...each(
      good,
      2,
      TOO_LARGE.map((text) => `@${text}`),
    ),
  ]);
  table.refuses('refuses priorities and stall limits that are not integers', given, [
    ...each([A, 'p', '', '1', 'priority', '1'], 5, [...NOT_NUMBERS, ...TOO_LARGE, `-${TOO_LARGE[0]}`]),
    ...each([A, 'p', '', '1', 'max_stalls', '1'], 5, [...NOT_NUMBERS, ...TOO_LARGE, '-1']),
  ]);
  table.refuses('refuses fields that belong to the server', given, [
    ...each([A, 'p', '', '1', 'name', '1'], 4, ['state', 'attempts', 'payload', 'lapsed', 'uncharged', 'Priority', '']),
  ]);
  table.refuses('refuses calls that do not add up', given, [
    [],
    [A],
    [A, 'p'],
    [A, 'p', ''],
    [A, 'p', '', '1'],
    [A, 'p', '', '1', 'priority'],
    [A, 'p', '', '0', 'priority', '1'],
    [A, 'p', '', '0', B],
    ...each(good, 3, [...NOT_NUMBERS, '-1', '1000000000']),
  ]);
  table.refuses('refuses the whole call for one bad job', given, [
    [A, 'p', '', '0', B, 'p', 'soon', '0'],
    [A, 'p', '', '0', 'mine', 'p', '', '0'],
  ]);
  table.refusesTypes([A, 'p', '', 0], ['pending', 'hungry', 'metrics:enqueued']);
  table.refusesTypes([A, 'p', '500', 0], ['schedule']); // touched only by a job with a delay

  it('keeps every byte of a payload', async () => {
    const payload = Buffer.from([...Array(256).keys()]);
    await table.queue.run('enqueue', [A, payload, '', 0, B, '', '', 0]);
    expect(await table.queue.client.hgetBuffer(table.queue.keys.row(A), 'payload')).toEqual(payload);
    expect(await table.queue.client.hget(table.queue.keys.row(B), 'payload')).toBe('');
  });

  it('takes 2,500 jobs in one call', async () => {
    const ids = Array.from({ length: 2_500 }, (_, n) => id(n));
    const args = ids.flatMap((jobId, n) => [jobId, 'p', n % 2 === 0 ? '' : `@${FAR + n}`, '0']);
    expect(await table.queue.run('enqueue', args)).toEqual(ids.map(() => 1));
    const dump = await table.queue.dump();
    expect(dump.pending).toEqual(zset(...ids.filter((_, n) => n % 2 === 0).map((x): [string, number] => [x, 0])));
    expect(dump.schedule).toEqual(
      zset(...ids.map((x, n): [string, number] => [x, FAR + n]).filter((_, n) => n % 2 === 1)),
    );
    expect(dump['metrics:enqueued']).toEqual(counted(2_500));
    expect(Object.keys(dump)).toHaveLength(2_503);
  });
});
