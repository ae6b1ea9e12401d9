import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Transition } from '../../lib/wire/transition.js';
import * as t from '../../lib/wire/transitions/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { useExecutor } from './executor.js';
import { FAR, Hand, id, PAST } from './hand.js';
import { NEVER, schedule } from './schedules.js';
import { inMs, msUntil, timed } from './server-time.js';

describe('a typed call about repeating schedules', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();
  let queue: Hand;
  beforeEach(() => {
    queue = new Hand(server.client(), executor.current);
  });
  const run = <Call, Answer>(step: Transition<Call, Answer>, call: Call) =>
    timed(queue.client, () => executor.current.run(step, queue.keys, call));
  const declaration = {
    key: 'k',
    rev: 'r',
    spec: 's',
    rules: '{}',
    payload: 'p',
    nextSlot: FAR,
    origin: '',
    fields: [],
  };
  const due = { offset: 0, limit: 10, maxBytes: 1000, due: true };

  it('declares one, and says whether that changed anything', async () => {
    expect(await run(t.schedulePut, declaration)).toEqual({ what: 'new', nextSlot: FAR });
    expect(await run(t.schedulePut, declaration)).toEqual({ what: 'unchanged', nextSlot: FAR });
    const fields = ['priority', '1'];
    expect(await run(t.schedulePut, { ...declaration, rev: 'r2', fields })).toEqual({ what: 'changed', nextSlot: FAR });
  });

  it('gets one, and the time where there is none', async () => {
    await schedule(queue, 'k', FAR);
    const { now, schedule: found } = await run(t.scheduleGet, 'k');
    expect(now).toEqual(inMs(0));
    expect(found).toMatchObject({ key: 'k', nextSlot: FAR });
    expect(found?.row.get('payload')).toEqual(Buffer.from('p'));
    expect(await run(t.scheduleGet, 'none')).toEqual({ now: inMs(0), schedule: undefined });
  });

  it('lists them, or those that are due', async () => {
    const list = { ...due, due: false };
    expect(await run(t.scheduleList, list)).toEqual({ now: inMs(0), total: 0, nextInMs: undefined, schedules: [] });
    await schedule(queue, 'ключ', PAST);
    await schedule(queue, 'later', FAR);
    await queue.client.zadd(queue.keys.schedules, PAST, 'ghost');
    const { total, nextInMs, schedules } = await run(t.scheduleList, due);
    expect([total, nextInMs]).toEqual([3, msUntil(FAR)]);
    expect(schedules.map(({ key, nextSlot, row }) => [key, nextSlot, row.size])).toEqual([
      ['ghost', PAST, 0],
      ['ключ', PAST, 5],
    ]);
    expect((await run(t.scheduleList, list)).schedules.map(({ key }) => key)).toEqual(['ghost', 'ключ', 'later']);
  });

  it('fires, and says in words what became of each slot', async () => {
    await schedule(queue, 'k', PAST);
    const item = { key: 'k', rev: 'r', slot: PAST, nextSlot: PAST + 1, alone: true, id: id(1), payload: 'p' };
    const items = [
      item,
      item,
      { ...item, slot: PAST + 1, nextSlot: FAR, id: id(2) },
      { ...item, slot: FAR, nextSlot: FAR + 1 },
      { ...item, rev: 'r0' },
      { ...item, slot: undefined, alone: false, id: id(3) },
    ];
    expect(await run(t.scheduleFire, items)).toEqual({
      outcomes: ['ok', 'fired', 'overlap', 'early', 'changed', 'ok'],
      nextInMs: msUntil(FAR),
    });
    expect(await queue.client.zrange(queue.keys.pending, 0, '-1')).toEqual([id(1), id(3)]);
  });

  it('pauses, resumes and removes', async () => {
    await schedule(queue, 'k', FAR);
    expect(await run(t.schedulePause, 'k')).toBe('ok');
    expect(await run(t.schedulePause, 'k')).toBe('wrong_state');
    expect(await run(t.schedulePause, 'none')).toBe('gone');
    expect((await run(t.scheduleGet, 'k')).schedule?.nextSlot).toBeGreaterThanOrEqual(NEVER);
    expect(await run(t.scheduleResume, { key: 'k', rev: 'r0', nextSlot: FAR })).toBe('stale');
    expect(await run(t.scheduleResume, { key: 'k', rev: 'r', nextSlot: FAR })).toBe('ok');
    expect(await run(t.scheduleResume, { key: 'k', rev: 'r', nextSlot: FAR })).toBe('wrong_state');
    expect(await run(t.scheduleRemove, ['k', 'none'])).toEqual([true, false]);
  });
});
