import { type Changes, counted, fields, job, zset } from './changes.js';
import { id, PAST } from './hand.js';
import { A, active, bare, held, lapsed, pending, scheduled, throttled } from './key-holders.js';
import { inMs } from './server-time.js';
import { describeTransition, type Row } from './state-table.js';

const [B, C] = [id(2), id(3)];
const USED = { dedups: { string: '1' } };
const LANDED = { state: 'pending', attempts: '0', payload: 'new', dedup: 'k' };

describeTransition('enqueue', (table) => {
  const call = (value: string, delay = '') => [B, 'new', delay, 1, 'dedup', value];
  const lands = (where: Changes, owner: object = { string: B }): Partial<Row> => ({
    answer: [1],
    changes: { ...USED, 'dedup:k': owner, [job(B)]: fields(LANDED), ...where },
  });
  const expires = { string: B, expires: true };

  for (const [mode, owner] of [
    ['u', { string: B }],
    ['u60000', expires],
    ['l', { string: B }],
    ['l60000', expires],
  ] as const) {
    table.it(`lands a job under a free key, which it holds from now on (${mode})`, {
      ...(lands({ pending: zset([B, 0]), 'metrics:enqueued': counted(1) }, owner) as Row),
      call: call(`${mode}:k`),
    });
  }

  table.it('holds a key by time alone for a throttled job, whose row does not name it (t)', {
    call: call('t60000:k'),
    answer: [1],
    changes: {
      ...USED,
      'dedup:k': expires,
      [job(B)]: fields({ ...LANDED, dedup: undefined }),
      pending: zset([B, 0]),
      'metrics:enqueued': counted(1),
    },
  });

  table.it('makes a debounced job wait, whatever delay it was given (d)', {
    ...(lands({
      schedule: zset([B, inMs(700)]),
      [job(B)]: fields({ ...LANDED, state: 'scheduled' }),
      'metrics:enqueued': counted(1),
    }) as Row),
    call: call('d700:k', '90000'),
    hears: [['beat', '700']],
  });

  for (const [state, given] of Object.entries({ pending, scheduled, active })) {
    table.it(`answers who holds the key, and that it is ${state} (u)`, {
      given,
      call: call('u:k'),
      answer: [`${A} ${state}`],
    });
  }
  for (const [state, given] of Object.entries({ ...throttled, gone: bare })) {
    table.it(`answers who holds the key by time, and that it is ${state} (t)`, {
      given,
      call: call('t60000:k'),
      answer: [`${A} ${state}`],
      reachable: state !== 'gone',
    });
  }

  table.it('takes a key whose holder is gone, unless it is held by time (u)', {
    given: bare,
    ...(lands({ pending: zset([B, 0]), 'metrics:enqueued': counted(1) }) as Row),
    call: call('u:k'),
  });

  table.it('gives the job that waits under the key the new data, and lets it keep its place (l)', {
    given: held((queue, jobId, more) => queue.pending(jobId, { ...more, priority: 3 })),
    call: call('l:k'),
    answer: [`${A} pending replaced`],
    changes: { [job(A)]: fields({ payload: 'new' }) },
  });

  table.it('gives the scheduled job the new data, and not another time (l)', {
    given: scheduled,
    call: call('l:k', '5'),
    answer: [`${A} scheduled replaced`],
    changes: { [job(A)]: fields({ payload: 'new' }) },
  });

  for (const mode of ['l', 'd700']) {
    table.it(`gives a job that waits for its next attempt the new data, with all attempts before it (${mode})`, {
      given: held((queue, jobId, more) => queue.scheduled(jobId, { ...more, attempts: 2, uncharged: 1 }, PAST)),
      call: call(`${mode}:k`),
      answer: [`${A} scheduled replaced`],
      changes: {
        [job(A)]: fields({ payload: 'new', uncharged: '2' }),
        ...(mode === 'l' ? {} : { schedule: zset([A, inMs(700)]) }),
      },
    });
  }

  for (const [what, given] of Object.entries({ 'is running': active, 'has lapsed': lapsed })) {
    table.it(`lands beside a job that ${what}, and takes the key over (l)`, {
      given,
      call: call('l:k'),
      answer: [1],
      changes: {
        'dedup:k': { string: B },
        [job(B)]: fields(LANDED),
        pending: what === 'has lapsed' ? zset([A, 0], [B, 0]) : zset([B, 0]),
        'metrics:enqueued': counted(2),
      },
    });
  }

  table.it('gives the job that waits under the key the new data, and begins its wait anew (d)', {
    given: held((queue, jobId, more) => queue.scheduled(jobId, more, PAST)),
    call: call('d700:k'),
    answer: [`${A} scheduled replaced`],
    changes: { [job(A)]: fields({ payload: 'new' }), schedule: zset([A, inMs(700)]) },
  });

  table.it('announces a wait that has become shorter (d)', {
    given: scheduled,
    call: call('d700:k'),
    answer: [`${A} scheduled replaced`],
    changes: { [job(A)]: fields({ payload: 'new' }), schedule: zset([A, inMs(700)]) },
    hears: [['beat', '700']],
  });

  for (const [state, given] of Object.entries({ pending, active })) {
    table.it(`lands beside a job that is ${state}, waits, and takes the key over (d)`, {
      given,
      call: call('d700:k'),
      answer: [1],
      changes: {
        'dedup:k': { string: B },
        [job(B)]: fields({ ...LANDED, state: 'scheduled' }),
        schedule: zset([B, inMs(700)]),
        'metrics:enqueued': counted(2),
      },
      hears: [['beat', '700']],
    });
  }

  table.it('looks at the jobs of one call in their order', {
    call: [
      ...[A, 'a', '', 1, 'dedup', 'd60000:k', B, 'b', '', 1, 'dedup', 'd700:k'],
      ...[C, 'c', '', 1, 'dedup', 'u:other', A, 'd', '', 1, 'dedup', 'u:other'],
    ],
    answer: [1, `${A} scheduled replaced`, 1, `${A} scheduled`],
    changes: {
      ...USED,
      'dedup:k': { string: A },
      'dedup:other': { string: C },
      schedule: zset([A, inMs(700)]),
      pending: zset([C, 0]),
      [job(A)]: fields({ ...LANDED, state: 'scheduled', payload: 'b' }),
      [job(C)]: fields({ ...LANDED, payload: 'c', dedup: 'other' }),
      'metrics:enqueued': counted(2),
    },
    hears: [['beat', '700']],
  });

  table.it('does not take a key for an id that exists', {
    given: (queue) => queue.dead(B),
    call: call('u:k'),
    answer: [`${B} dead`],
    changes: USED,
  });

  table.it('takes a key over that holds another type', {
    given: (queue) => queue.client.rpush(`${queue.keys.base}dedup:k`, 'x'),
    ...(lands({ pending: zset([B, 0]), 'metrics:enqueued': counted(1) }) as Row),
    call: call('u:k'),
  });

  table.refuses(
    'refuses keys, modes and times that are malformed',
    async () => undefined,
    [
      '',
      ':',
      'u',
      'u:',
      'k',
      'x:k',
      't:k',
      'd:k',
      'u0:k',
      't0:k',
      'u05:k',
      'u-1:k',
      'u1.5:k',
      'u9007199254740992:k',
      `u:${'x'.repeat(201)}`,
    ].map((value) => call(value)),
  );
});
