import { beforeEach, describe, expect, it } from '@jest/globals';
import { BEGINNING } from '../../lib/kernel/stream-id.js';
import { Outbox } from '../../lib/wire/outbox.js';
import type { Transition } from '../../lib/wire/transition.js';
import * as t from '../../lib/wire/transitions/index.js';
import { childrenTokens, treeTokens } from '../../lib/wire/tree-tokens.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { useExecutor } from './executor.js';
import { waiting } from './family.js';
import { FAR, Hand, id, PAST } from './hand.js';
import { timed } from './server-time.js';
import { node, treeJob } from './tree.js';

const [A, B, C] = [id(1), id(2), id(3)];

describe('a typed call', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();
  let queue: Hand;
  beforeEach(() => {
    queue = new Hand(server.client(), executor.current);
  });
  const run = <Call, Answer>(step: Transition<Call, Answer>, call: Call) =>
    timed(queue.client, () => executor.current.run(step, queue.keys, call));
  const item = (jobId: string, fields: string[] = [], delay = '') => ({ id: jobId, payload: 'p', delay, fields });

  it('enqueues, and says which of the jobs are new', async () => {
    expect(await run(t.enqueue, [item(A), item(B, ['priority', '1']), item(A)])).toEqual([
      'landed',
      'landed',
      { id: A, state: 'pending', replaced: false },
    ]);
  });

  it('enqueues under keys and into lanes, and says who is there, and what is full', async () => {
    await run(t.lane, { kind: 'lane', name: 'x', settings: ['max_waiting', '1'] });
    const answers = await run(t.enqueue, [
      item(A, ['lane', 'x', 'dedup', 'l:k']),
      item(B, ['dedup', 'l:k']),
      item(C, ['lane', 'x']),
    ]);
    expect(answers).toEqual(['landed', { id: A, state: 'pending', replaced: true }, 'full']);
    await run(t.enqueue, [item(id(4), ['dedup', 't60000:t'])]);
    await queue.client.del(queue.keys.row(id(4)));
    expect(await run(t.enqueue, [item(id(5), ['dedup', 't60000:t'])])).toEqual([
      { id: id(4), state: 'gone', replaced: false },
    ]);
  });

  it('shows lanes and limits, and says in words what is not there', async () => {
    await run(t.lane, { kind: 'lane', name: 'g\x1fZoë', settings: ['cap', '2', 'paused', '1'] });
    const standing = { name: 'g\x1fZoë', waiting: 0, active: 0, turnInMs: undefined };
    const found = await run(t.laneList, { name: 'g\x1fZoë' });
    expect(found).toMatchObject({ total: 2, lanes: [standing] });
    expect(found.lanes[0]!.state.get('cap')).toEqual(Buffer.from('2'));
    const page = await run(t.laneList, { offset: 0, limit: 10 });
    expect(page.lanes.map(({ name }) => name).sort()).toEqual(['g\x1f', 'g\x1fZoë']);
    expect(await run(t.unpark, undefined)).toEqual({ brought: 0, nextInMs: undefined });
    const none = { concurrency: undefined, intervalMs: undefined, burst: undefined, heldForMs: 0 };
    expect(await run(t.limit, [])).toEqual(none);
    const set = await run(t.limit, ['concurrency', '3', 'interval', '0.5', 'burst', '2']);
    expect(set).toEqual({ concurrency: 3, intervalMs: 0.5, burst: 2, heldForMs: 0 });
  });

  it('reports progress', async () => {
    await queue.active(A);
    const reports = ['1', '2'].map((token) => ({ id: A, token, value: Buffer.from('50') }));
    expect(await run(t.progress, [...reports, { id: B, token: '1', value: '1' }])).toEqual(['ok', 'stale', 'gone']);
  });

  it('claims with an epoch, and makes the token of it', async () => {
    await queue.pending(A, { payload: 'work', attempts: 2, uncharged: 1 });
    const call = { leaseMs: 1000, count: 5, epoch: 'f00d.x1', process: '' };
    expect(await run(t.claim, call)).toEqual([
      { id: A, payload: Buffer.from('work'), attempts: 3, token: '3@f00d.x1', uncharged: 1 },
    ]);
    expect(await run(t.claim, call)).toEqual([]);
  });

  it('claims without an epoch, on a wire that has none', async () => {
    await queue.pending(A);
    await queue.pending(B, { attempts: 1 });
    const claimed = await run(t.claim, { leaseMs: 1000, count: 5, epoch: undefined, process: '' });
    expect(claimed.map(({ token }) => token)).toEqual(['1', '2']);
  });

  it('settles, and says in words what became of each job', async () => {
    await queue.active(A);
    await queue.active(B);
    const done = { keepMs: 0, result: 'r' };
    const items = [
      { id: A, token: '1', ...done },
      { id: B, token: '9', ...done },
      { id: C, token: '1', ...done },
    ];
    expect(await run(t.complete, { record: 0, items })).toEqual(['ok', 'stale', 'gone']);
  });

  it('retries, and says where each job went', async () => {
    for (const jobId of [A, B, C]) await queue.active(jobId);
    const failed = (jobId: string, delayMs: number, maxAttempts: number, token = '1') => {
      return { id: jobId, token, delayMs, maxAttempts, error: 'boom' };
    };
    const items = [failed(A, 5, 3), failed(B, 0, 3), failed(C, 0, 0), failed(C, 0, 0), failed(id(9), 0, 0)];
    expect(await run(t.retry, { record: 0, items })).toEqual(['scheduled', 'pending', 'dead', 'stale', 'gone']);
  });

  it('releases and extends', async () => {
    await queue.active(A);
    await queue.active(B, { cancel: 1 });
    await queue.lapsed(C);
    const held = [A, B, C, id(9)].map((jobId) => ({ id: jobId, token: '1' }));
    const extended = await run(t.extend, { leaseMs: 1000, items: held });
    expect(extended).toEqual(['ok', 'cancelled', 'wrong_state', 'gone']);
    expect(await run(t.release, [{ id: A, token: '1', delay: '' }])).toEqual(['ok']);
  });

  it('promotes and reaps, and leaves out what there is none of', async () => {
    expect(await run(t.promote, { limit: 10 })).toEqual({ moved: 0, nextRunAt: undefined, nextInMs: undefined });
    const sweep = { limit: 10, maxStalls: 0, epoch: '', record: 0 };
    const nothing = { requeued: 0, died: 0, deadIds: [], nextDeadline: undefined, nextInMs: undefined };
    expect(await run(t.reap, sweep)).toEqual(nothing);
    await queue.scheduled(A, {}, PAST);
    await queue.scheduled(B, {}, FAR);
    await queue.active(C, {}, PAST);
    expect(await run(t.promote, { limit: 10 })).toMatchObject({ moved: 1, nextRunAt: FAR });
    expect(await run(t.reap, sweep)).toEqual({ ...nothing, died: 1, deadIds: [C] });
  });

  it('reprocesses, removes, cancels, reschedules and trims', async () => {
    await queue.dead(A);
    await queue.dead(B);
    await queue.scheduled(C);
    await queue.active(id(4));
    expect(await run(t.reprocess, { fresh: true, ids: [A, C, id(9)] })).toEqual(['ok', 'wrong_state', 'gone']);
    expect(await queue.client.hget(queue.keys.row(A), 'uncharged')).toBe('1');
    expect(await run(t.trim, { keepCount: 0, limit: 10 })).toBe(1);
    expect(
      await run(t.reschedule, [
        { id: C, delay: '5' },
        { id: A, delay: '' },
      ]),
    ).toEqual(['ok', 'wrong_state']);
    const cancelled = await run(t.cancel, { tree: false, ids: [C, id(4), id(9)] });
    expect(cancelled).toEqual(['removed', 'stopping', 'gone']);
    expect(await run(t.remove, { tree: false, ids: [A, id(4), id(9)] })).toEqual(['ok', 'wrong_state', 'gone']);
  });

  it('lands a tree, gives a running parent more children, and sends it to wait for them', async () => {
    const lone = { parent: '', token: '', tokens: treeTokens(treeJob(node(A, {}, [node(B)]))).tokens };
    expect([await run(t.land, lone), await run(t.land, lone)]).toEqual(['landed', 'exists']);
    await queue.active(id(5));
    const given = (token: string, child: string) => {
      const { tokens } = childrenTokens('q', [treeJob(node(child), { queue: 'q', id: id(5) })]);
      return { parent: id(5), token, tokens };
    };
    expect(await run(t.land, given('9', C))).toBe('stale');
    expect([await run(t.land, given('1', C)), await run(t.land, given('1', C))]).toEqual(['landed', 'landed']);
    await expect(run(t.land, given('1', B))).rejects.toMatchObject({ code: 'EMQSTATE' });
    const held = [id(5), id(5), id(9)].map((jobId) => ({ id: jobId, token: '1' }));
    expect(await run(t.wait, held)).toEqual(['ok', 'stale', 'gone']);
  });

  it('watches, and says in words what has become of a job already', async () => {
    await queue.pending(A);
    await queue.dead(B);
    expect(await run(t.watch, [A, B, C])).toEqual(['pending', 'dead', undefined]);
  });

  it('applies what an outbox holds, and says up to where', async () => {
    const { connection } = executor.current;
    await waiting(queue, A, { children: [`r|${B}`] });
    const other = new Hand(queue.client, executor.current, 'r');
    await other.active(B, { parent: A, parent_queue: 'q' });
    await executor.current.run(t.complete, other.keys, {
      record: 0,
      items: [{ id: B, token: '1', keepMs: 0, result: Buffer.from([0, 255, 10]) }],
    });
    const effects = await new Outbox(connection, other.keys).read(BEGINNING, 10);
    const last = effects[0]!.id;
    expect(effects).toEqual([expect.objectContaining({ target: 'q', kind: 'settle' })]);
    expect(await run(t.apply, { source: 'r', previous: BEGINNING, effects })).toBe(last);
    expect(await run(t.apply, { source: 'r', previous: last, effects: [] })).toBe(last);
    const result = await queue.client.hgetBuffer(`${queue.keys.row(A)}:processed`, B);
    expect(result).toEqual(Buffer.from([0, 255, 10]));
  });

  it('removes and cancels trees, and says what has to go first', async () => {
    await waiting(queue, A, { children: [B, C] });
    await queue.active(B, { parent: A });
    await queue.pending(C, { parent: A });
    expect(await run(t.remove, { tree: false, ids: [A] })).toEqual(['wrong_state']);
    expect(await run(t.remove, { tree: true, ids: [A, B] })).toEqual(['children_first', 'runs_on']);
    expect(await run(t.cancel, { tree: true, ids: [C, B, A] })).toEqual(['removed', 'stopping', 'removed']);
    await waiting(queue, id(5), { children: [B] });
    expect(await run(t.remove, { tree: true, first: true, ids: [id(5), id(5)] })).toEqual([
      'children_first',
      'children_first',
    ]);
    expect(await run(t.cancel, { tree: true, first: true, ids: [id(5)] })).toEqual(['children_first']);
    expect(await run(t.cancel, { tree: false, ids: [id(5)] })).toEqual(['wrong_state']);
    expect(await run(t.cancel, { tree: true, ids: [id(5)] })).toEqual(['removed']);
  });

  it('reprioritises and rewrites', async () => {
    await queue.pending(A);
    await queue.active(B);
    const items = [A, id(9)].map((jobId) => ({ id: jobId, priority: -3 }));
    expect(await run(t.reprioritise, items)).toEqual(['ok', 'gone']);
    const rewritten = (jobId: string, read: string) => ({ id: jobId, read: Buffer.from(read), payload: 'q' });
    const calls = [rewritten(A, 'x'), rewritten(A, 'p'), rewritten(B, 'p'), rewritten(C, 'p')];
    expect(await run(t.rewrite, calls)).toEqual(['stale', 'ok', 'wrong_state', 'gone']);
    expect(await queue.client.hget(queue.keys.row(A), 'payload')).toBe('q');
  });

  it('removes what is in one state, and nothing else', async () => {
    await queue.pending(A);
    await queue.scheduled(B);
    await queue.dead(C);
    for (const [only, expected] of [
      ['dead', ['wrong_state', 'wrong_state', 'ok']],
      ['scheduled', ['wrong_state', 'ok', 'gone']],
      ['pending', ['ok', 'gone', 'gone']],
    ] as const) {
      expect(await run(t.remove, { tree: false, only, ids: [A, B, C] })).toEqual(expected);
    }
  });

  it('meets members, the dead and completions', async () => {
    await queue.pending(A);
    await queue.dead(B);
    await queue.client.zadd(`${queue.keys.base}lane:Zoë`, 0, C);
    const whole = { cursor: '0', count: 10 };
    expect(await run(t.members, { set: 'pending', ...whole })).toEqual({ cursor: '0', members: [A] });
    expect(await run(t.members, { set: 'lane:Zoë', ...whole })).toEqual({ cursor: '0', members: [C] });
    const page = { limit: 10, maxBytes: 1000 };
    const [row] = await run(t.get, [B]);
    expect(await run(t.morgue, { after: '', ...page })).toEqual({ last: B, rows: [{ id: B, row }] });
    expect(await run(t.morgue, { after: B, ...page })).toEqual({ last: B, rows: [] });
    expect(await run(t.completions, { after: '5-1', ...page })).toEqual({ restarted: true, entries: [] });
    await queue.client.xadd(queue.keys.completions, '5-1', 'id', A);
    const entries = [{ at: '5-1', fields: new Map([['id', Buffer.from(A)]]) }];
    expect(await run(t.completions, { after: BEGINNING, ...page })).toEqual({ restarted: false, entries });
  });

  it('pauses, resumes and passes', async () => {
    expect([await run(t.pause, undefined), await run(t.pause, undefined)]).toEqual([true, false]);
    expect([await run(t.resume, undefined), await run(t.resume, undefined)]).toEqual([true, false]);
    expect(await run(t.pass, { process: 'p1' })).toBe(false);
  });

  it('counts, gets and lists', async () => {
    await queue.pending(A, { priority: 5 });
    await queue.paused();
    const metrics = { enqueued: 1, completed: 0, removed: 0, failed: 0, retried: 0, stalled: 0 };
    const sizes = { pending: 1, active: 0, scheduled: 0, dead: 0, awaitingChildren: 0 };
    expect(await run(t.counts, undefined)).toEqual({ ...sizes, paused: true, metrics });
    const [row, none] = await run(t.get, [A, B]);
    expect(row?.get('priority')).toEqual(Buffer.from('5'));
    expect(none).toBeUndefined();
    const page = { offset: 0, limit: 10, maxBytes: 1000 };
    expect(await run(t.list.pending, page)).toEqual({ total: 1, rows: [{ id: A, score: 5, row }] });
    expect(await run(t.list.dead, page)).toEqual({ total: 0, rows: [] });
  });

  it('obliterates', async () => {
    await queue.active(A);
    await expect(run(t.obliterate, { force: false, limit: 10 })).rejects.toMatchObject({ code: 'EMQSTATE' });
    expect(await run(t.obliterate, { force: true, limit: 10 })).toBe(1);
    expect(await run(t.obliterate, { force: true, limit: 10 })).toBe(0);
  });

  it('sweeps', async () => {
    await queue.done(A);
    await queue.pending(B);
    expect(await run(t.sweep, [A, B, C])).toBe(1);
  });

  it('is sent again only where a repetition changes nothing', () => {
    const steps = Object.values({ ...t, list: t.list.pending }) as Transition<never, unknown>[];
    const once = steps.filter((step) => !step.resend).map((step) => step.name);
    expect(once.sort()).toEqual(['claim', 'dispatch', 'extend', 'pass', 'progress', 'reschedule']);
  });
});
