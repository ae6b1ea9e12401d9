import { expect } from '@jest/globals';
import { type Changes, counted, fields, gone, job, zset } from './changes.js';
import { FAR, type Hand, id, PAST } from './hand.js';
import { A, active, held, lapsed, pending, scheduled } from './key-holders.js';
import { inMs } from './server-time.js';
import { describeTransition } from './state-table.js';

const B = id(2);
const USED = { dedups: { string: '1' } };

const ENDS: Changes = { dedups: { string: '1' }, 'dedup:k': gone };

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
