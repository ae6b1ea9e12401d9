import { expect } from '@jest/globals';
import { type Changes, counted, fields, gone, job, zset } from './changes.js';
import { FAR, type Fields, type Hand, id, PAST } from './hand.js';
import { inMs } from './server-time.js';
import { describeTransition, type Row } from './state-table.js';

const [A, B, C] = [id(1), id(2), id(3)];
const USED = { dedups: { string: '1' } };
const LANDED = { state: 'pending', attempts: '0', payload: 'new', dedup: 'k' };

/** Key k is held by A. */
const held =
  (
    put: (queue: Hand, jobId: string, fields: Fields) => Promise<unknown>,
    ttlMs?: number,
    dedup: Fields = { dedup: 'k' },
  ) =>
  async (queue: Hand) => {
    await put(queue, A, dedup);
    await queue.client.set(`${queue.keys.base}dedups`, 1);
    const key = `${queue.keys.base}dedup:k`;
    await (ttlMs === undefined ? queue.client.set(key, A) : queue.client.set(key, A, 'PX', ttlMs));
  };
const bare = async (queue: Hand) => {
  await queue.client.set(`${queue.keys.base}dedups`, 1);
  await queue.client.set(`${queue.keys.base}dedup:k`, A, 'PX', 600_000);
};

const pending = held((queue, jobId, more) => queue.pending(jobId, more));
const lapsed = held((queue, jobId, more) => queue.lapsed(jobId, more));
const scheduled = held((queue, jobId, more) => queue.scheduled(jobId, more));
const active = held((queue, jobId, more) => queue.active(jobId, more));
const throttled = {
  pending: held((queue, jobId) => queue.pending(jobId), 600_000),
  done: held((queue, jobId) => queue.done(jobId), 600_000),
  dead: held((queue, jobId) => queue.dead(jobId), 600_000),
};

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

const ENDS = { dedups: { string: '1' }, 'dedup:k': gone };

describeTransition('complete', (table) => {
  table.it('frees the key of its owner', {
    given: active,
    call: [0, A, 1, 0, ''],
    answer: [1],
    changes: { ...ENDS, active: gone, [job(A)]: gone, 'metrics:completed': counted(1) },
  });

  table.it('frees the key of a lapsed owner, and of one whose row is kept', {
    given: lapsed,
    call: [0, A, 1, 600_000, 'r'],
    answer: [1],
    changes: {
      ...ENDS,
      pending: gone,
      [job(A)]: { ...expectKept(), expires: true },
      'metrics:completed': counted(1),
    },
  });

  table.it('frees nobody else’s: a later job has taken the key over', {
    given: async (queue) => {
      await active(queue);
      await queue.pending(B, { dedup: 'k' });
      await queue.client.set(`${queue.keys.base}dedup:k`, B);
    },
    call: [0, A, 1, 0, ''],
    answer: [1],
    changes: { active: gone, [job(A)]: gone, 'metrics:completed': counted(1) },
  });

  table.it('does not free a key that is held by time', {
    given: held((queue, jobId) => queue.active(jobId), 600_000),
    call: [0, A, 1, 0, ''],
    answer: [1],
    changes: { active: gone, [job(A)]: gone, 'metrics:completed': counted(1) },
    reachable: true,
  });

  table.it('does not mind a key of another type', {
    given: async (queue) => {
      await active(queue);
      await queue.client.del(`${queue.keys.base}dedup:k`);
      await queue.client.rpush(`${queue.keys.base}dedup:k`, 'x');
    },
    call: [0, A, 1, 0, ''],
    answer: [1],
    changes: { active: gone, [job(A)]: gone, 'metrics:completed': counted(1) },
    reachable: false,
  });
});

const BURIED = { state: 'dead', last_error: 'boom', errors: '1', 'error:1': 'boom' };

describeTransition('retry', (table) => {
  table.it('keeps the key while the job is to run again', {
    given: active,
    call: [0, A, 1, 5000, 3, 'boom'],
    answer: ['scheduled'],
    changes: {
      active: gone,
      schedule: zset([A, inMs(5000)]),
      [job(A)]: fields({ ...BURIED, state: 'scheduled' }),
      'metrics:retried': counted(1),
    },
    hears: [['beat', '5000']],
  });

  table.it('frees it when the job is buried', {
    given: active,
    call: [0, A, 1, 5000, 1, 'boom'],
    answer: ['dead'],
    changes: { ...ENDS, active: gone, dead: zset([A, 0]), [job(A)]: fields(BURIED), 'metrics:failed': counted(1) },
  });
});

describeTransition('reap', (table) => {
  table.it('frees the key of a job that has lapsed too often', {
    given: held((queue, jobId, more) => queue.active(jobId, more, PAST)),
    call: [1000, 0, '', 0],
    answer: [0, 1, -1, -1, A],
    changes: {
      ...ENDS,
      active: gone,
      dead: zset([A, 0]),
      [job(A)]: fields({ ...buriedOf('lease lapsed 1 times'), stalls: '1' }),
      ...{ 'metrics:failed': counted(1), 'metrics:stalled': counted(1) },
    },
  });
});

describeTransition('reprocess', (table) => {
  const back = { state: 'pending', last_error: undefined };
  const dead = (queue: Hand) => queue.dead(A, { dedup: 'k' });

  table.it('takes the key again if it is free', {
    given: dead,
    call: [0, A],
    answer: [1],
    changes: { ...USED, 'dedup:k': { string: A }, dead: gone, pending: zset([A, 0]), [job(A)]: fields(back) },
  });

  table.it('leaves it to whoever has taken it meanwhile', {
    given: async (queue) => {
      await dead(queue);
      await queue.pending(B, { dedup: 'k' });
      await queue.client.mset(`${queue.keys.base}dedup:k`, B, `${queue.keys.base}dedups`, 1);
    },
    call: [0, A],
    answer: [1],
    changes: { dead: gone, pending: zset([A, 0], [B, 0]), [job(A)]: fields(back) },
  });
});

for (const name of ['remove', 'cancel'] as const) {
  describeTransition(name, (table) => {
    for (const [what, given, set] of [
      ['pending', pending, 'pending'],
      ['scheduled', scheduled, 'schedule'],
    ] as const) {
      table.it(`frees the key of a ${what} job`, {
        given,
        call: [0, A],
        answer: [1],
        changes: { ...ENDS, [set]: gone, [job(A)]: gone, 'metrics:removed': counted(1) },
      });
    }

    table.it('frees nothing of a later job when an older one with the same key goes', {
      given: async (queue) => {
        await queue.pending(B, { dedup: 'k' });
        await queue.scheduled(A, { dedup: 'k' }, FAR);
        await queue.client.mset(`${queue.keys.base}dedup:k`, B, `${queue.keys.base}dedups`, 1);
      },
      call: [0, A],
      answer: [1],
      changes: { schedule: gone, [job(A)]: gone, 'metrics:removed': counted(1) },
    });
  });
}

describeTransition('obliterate', (table) => {
  table.it('frees the keys of all it takes', {
    given: pending,
    call: [0, 1000],
    answer: 1,
    changes: {
      'dedup:k': gone,
      pending: gone,
      [job(A)]: gone,
      paused: { string: '1' },
      'metrics:removed': counted(1),
    },
  });
});

function buriedOf(text: string) {
  return { state: 'dead', last_error: text, errors: '1', 'error:1': text };
}

function expectKept(): object {
  return { hash: expect.objectContaining({ state: 'done', result: 'r', dedup: 'k' }) };
}
