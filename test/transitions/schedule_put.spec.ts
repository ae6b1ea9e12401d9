import { expect } from '@jest/globals';
import { fields, zset } from './changes.js';
import { FAR, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { NEVER, schedule, slotIn } from './schedules.js';
import { describeTransition } from './state-table.js';

const NEW = { rev: 'r2', spec: 's', rules: '{}', payload: 'p', origin: '' };

/** The call for what stands in SCHEDULE, with these parts changed. */
function put(parts: Partial<typeof NEW> & { key?: string; next?: number; given?: (string | number)[] } = {}) {
  const { key = 'k', next = FAR, given = [], ...rest } = parts;
  const { rev, spec, rules, payload, origin } = { ...NEW, ...rest };
  return [key, rev, spec, rules, payload, next, origin, given.length / 2, ...given].map(String);
}

describeTransition('schedule_put', (table) => {
  table.it('declares a schedule at its first slot, and announces it', {
    call: put({ given: ['priority', 7, 'max_stalls', 2] }),
    answer: [1, String(FAR)],
    changes: { schedules: zset(['k', FAR]), 'schedule:k': { hash: { ...NEW, priority: '7', max_stalls: '2' } } },
    hears: [['beat', slotIn(FAR)]],
  });

  table.it('declares one whose slot has passed, which is due at once', {
    call: put({ next: PAST }),
    answer: [1, String(PAST)],
    changes: { schedules: zset(['k', PAST]), 'schedule:k': { hash: NEW } },
    hears: [['beat', 'slot:0']],
  });

  table.it('changes nothing when it is declared again as it is, whatever next slot is offered', {
    given: (queue) => schedule(queue, 'k', PAST, { last_slot: PAST - 1, last_job: 'j' }),
    call: put({ next: FAR }),
    answer: [0, String(PAST)],
  });

  table.it('changes nothing of one with fields that is declared again as it is', {
    given: (queue) => schedule(queue, 'k', FAR, { priority: 7, max_stalls: 0 }),
    call: put({ given: ['max_stalls', 0, 'priority', 7] }),
    answer: [0, String(FAR)],
  });

  table.it('moves the next slot when the times are others, and announces an earlier one', {
    given: async (queue) => {
      await schedule(queue, 'k', FAR, { last_slot: PAST, last_job: 'j', skipped: 3 });
      await schedule(queue, 'other', FAR - 1);
    },
    call: put({ spec: 's2', next: FAR - 2 }),
    answer: [2, String(FAR - 2)],
    changes: { schedules: zset(['k', FAR - 2], ['other', FAR - 1]), 'schedule:k': fields({ rev: 'r2', spec: 's2' }) },
    hears: [['beat', slotIn(FAR - 2)]],
  });

  table.it('announces no later one', {
    given: (queue) => schedule(queue, 'k', FAR),
    call: put({ spec: 's2', next: FAR + 1 }),
    answer: [2, String(FAR + 1)],
    changes: { schedules: zset(['k', FAR + 1]), 'schedule:k': fields({ rev: 'r2', spec: 's2' }) },
  });

  for (const [what, part] of Object.entries({ payload: 'p2', rules: '{"overlap":"skip"}', origin: 'declared' })) {
    table.it(`replaces its ${what}, and leaves the next slot where it is, overdue or not`, {
      given: (queue) => schedule(queue, 'k', PAST),
      call: put({ [what]: part, next: FAR }),
      answer: [2, String(PAST)],
      changes: { 'schedule:k': fields({ rev: 'r2', [what]: part }) },
    });
  }

  table.it('replaces and removes fields', {
    given: (queue) => schedule(queue, 'k', FAR, { priority: 7 }),
    call: put({ given: ['max_stalls', 1] }),
    answer: [2, String(FAR)],
    changes: { 'schedule:k': fields({ rev: 'r2', priority: undefined, max_stalls: '1' }) },
  });

  table.it('gives a lane, of a group too, and takes it away', {
    given: (queue) => schedule(queue, 'k', FAR, { lane: 'a', max_stalls: 1 }),
    call: put({ given: ['lane', 'g\u001fa'] }),
    answer: [2, String(FAR)],
    changes: { 'schedule:k': fields({ rev: 'r2', lane: 'g\u001fa', max_stalls: undefined }) },
  });

  table.it('with the same lane is as it was', {
    given: (queue) => schedule(queue, 'k', FAR, { lane: 'a' }),
    call: put({ given: ['lane', 'a'] }),
    answer: [0, String(FAR)],
  });

  table.it('without the lane it had, is another', {
    given: (queue) => schedule(queue, 'k', FAR, { lane: 'a' }),
    call: put(),
    answer: [2, String(FAR)],
    changes: { 'schedule:k': fields({ rev: 'r2', lane: undefined }) },
  });

  table.it('leaves a paused one paused, also with other times, and announces nothing', {
    given: (queue) => schedule(queue, 'k', 'paused'),
    call: put({ spec: 's2', next: PAST }),
    answer: [2, String(NEVER)],
    changes: { 'schedule:k': fields({ rev: 'r2', spec: 's2' }) },
  });

  table.it('changes nothing of a paused one that is declared again as it is', {
    given: (queue) => schedule(queue, 'k', 'paused'),
    call: put(),
    answer: [0, String(NEVER)],
  });

  table.it('begins anew what somebody has half deleted', {
    given: async (queue) => {
      await schedule(queue, 'k', PAST, { last_slot: FAR, last_job: 'j', skipped: 1, paused: 1 });
      await queue.client.zrem(queue.keys.schedules, 'k');
    },
    call: put(),
    answer: [1, String(FAR)],
    changes: { schedules: zset(['k', FAR]), 'schedule:k': { hash: NEW } },
    hears: [['beat', expect.anything()]],
  });

  table.it('begins anew where only the member is left', {
    given: async (queue) => void (await queue.client.zadd(queue.keys.schedules, PAST, 'k')),
    call: put(),
    answer: [1, String(FAR)],
    changes: { schedules: zset(['k', FAR]), 'schedule:k': { hash: NEW } },
  });

  table.it('takes any bytes for key and payload', {
    call: put({ key: 'ключ: "a b"', payload: '\0\r\n', next: FAR }),
    answer: [1, String(FAR)],
    changes: {
      schedules: zset(['ключ: "a b"', FAR]),
      'schedule:ключ: "a b"': { hash: { ...NEW, payload: '\0\r\n' } },
    },
    hears: [['beat', expect.anything()]],
  });

  const given = () => schedule(table.queue, 'k', FAR);
  table.refuses('refuses keys that are not 1 to 200 bytes, and no rev', given, [
    [],
    put({ key: '' }),
    put({ key: 'x'.repeat(201) }),
    put({ rev: '' }),
  ]);
  table.refuses('refuses next slots that are not canonical milliseconds', given, [
    ...each(put(), 5, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1']),
  ]);
  table.refuses('refuses fields that do not add up, are none of its own, or no integers', given, [
    ...each(put(), 7, ['1', '3', '-1', 'x', '']),
    [...put(), 'priority', '1'],
    put({ given: ['priority', 1, 'max_stalls', 1, 'priority', 1] }),
    put({ given: ['priority', 1, 'max_stalls', 1, 'lane', 'a', 'awaited', 1] }),
    put({ given: ['lane', ''] }),
    put({ given: ['lane', 'a\u001f'] }),
    put({ given: ['lane', 'x'.repeat(201)] }),
    put({ given: ['awaited', 1] }),
    put({ given: ['priority', 'high'] }),
    put({ given: ['max_stalls', -1] }),
  ]);
  table.refusesTypes(put(), ['schedules', 'schedule:k']);
});
