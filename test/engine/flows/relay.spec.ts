import { describe, expect, it } from '@jest/globals';
import type { EchoError, EchoMq, EchoMqOptions } from '../../../lib/core.js';
import { SECOND_LOOK_MS } from '../../../lib/engine/relay.js';
import { until } from '../../support/until.js';
import { hashOf } from '../hashes.js';
import { latch, numbers } from '../jobs/stage.js';
import { SkewedClock } from '../skewed-clock.js';
import { unapplied } from './balance.js';
import { Diary, node, useFlowStage } from './stage.js';

const kept = { keepMs: 600_000 };
const kids = (...names: string[]) => names.map((name) => node('kids', name));

async function pending(echo: EchoMq, queue: string, count: number): Promise<void> {
  await until(async () => (await echo.jobs.counts(queue)).pending === count, { what: `${count} pending in ${queue}` });
}

describe('what a queue owes others', () => {
  const stage = useFlowStage();

  /** An engine for which the time until the second look can be passed over. */
  async function skewed(options: Partial<EchoMqOptions> = {}) {
    const clock = new SkewedClock();
    const echo = await stage.connect({ clock, ...options });
    return { echo, secondLook: () => clock.skip(SECOND_LOOK_MS + 1) };
  }

  const owed = (queue: string) => stage.control.xlen(`emq:{${queue}}:outbox`);

  it('is kept until a second look, long after it was applied, finds it applied still', async () => {
    const { echo, secondLook } = await skewed();
    const diary = new Diary();
    diary.serve(echo, ['q', 'kids']);
    const flow = () => echo.flows.add(node('q', 'parent', kids('a', 'b'), kept));
    await echo.jobs.wait('q', (await flow()).id);
    await until(async () => (await unapplied(stage.control, ['q', 'kids'])).length === 0, {
      what: 'all to be applied',
    });
    expect([await owed('q'), await owed('kids')]).toEqual([1, 2]);
    secondLook();
    await until(async () => (await owed('q')) + (await owed('kids')) === 0, { what: 'the second look' });
    await echo.jobs.wait('q', (await flow()).id);
    expect(diary.count('parent')).toBe(2);
    expect(diary.names).toHaveLength(6);
  });

  it('is brought again to a target that has lost it, by the second look', async () => {
    const { echo, secondLook } = await skewed();
    const { id } = await echo.flows.add(node('q', 'parent', kids('a', 'b', 'c'), kept));
    await pending(echo, 'kids', 3);
    const lost = await stage.control.keys('emq:{kids}:*');
    await stage.control.del(...lost);
    await echo.jobs.enqueue('kids', 'newer');
    secondLook();
    await pending(echo, 'kids', 4);
    const diary = new Diary();
    diary.serve(echo, ['q', 'kids']);
    await echo.jobs.wait('q', id);
    expect(diary.names.sort()).toEqual(['a', 'b', 'c', 'newer', 'parent']);
    secondLook();
    await until(async () => (await owed('q')) + (await owed('kids')) === 0, { what: 'the second look' });
  });

  it('is brought again to a target that has lost it, in order, by the next effect', async () => {
    const { echo } = await skewed();
    for (const name of ['one', 'two', 'three']) await echo.flows.add(node('q', name, kids(`of ${name}`), kept));
    await pending(echo, 'kids', 3);
    const [first] = (await stage.control.xrange('emq:{q}:outbox', '-', '+')).map(([id]) => id);
    // As after a failover to a server that has heard of the first only.
    const [, ...gone] = (await echo.jobs.list('kids', 'pending')).jobs;
    await stage.control
      .multi()
      .hset('emq:{kids}:relayed', 'q', first!)
      .zrem('emq:{kids}:pending', ...gone.map(({ id }) => id))
      .del(...gone.map(({ id }) => `emq:{kids}:job:${id}`))
      .hincrby('emq:{kids}:metrics:enqueued', 'count', -2)
      .exec();
    await echo.flows.add(node('q', 'four', kids('of four'), kept));
    await pending(echo, 'kids', 4);
    const diary = new Diary();
    diary.serve(echo, ['q', 'kids'], {}, { concurrency: 1 });
    await until(() => diary.names.length === 8, { what: 'all to run' });
    expect(diary.names.filter((name) => name.startsWith('of'))).toEqual(['of one', 'of two', 'of three', 'of four']);
  });

  it('is counted once by a parent whose queue has lost a child that it had counted', async () => {
    const { echo, secondLook } = await skewed();
    const { id, children } = await echo.flows.add(node('q', 'parent', kids('a', 'b'), kept));
    await pending(echo, 'kids', 2);
    const [job] = await echo.jobs.claim('kids', { leaseMs: 60_000 });
    const before = await stage.control.hget('emq:{q}:relayed', 'kids');
    await echo.jobs.complete('kids', job!.id, job!.token, { result: 1 });
    await until(async () => (await echo.flows.dependencies('q', id)) === 1, { what: 'it to count' });
    await stage.control
      .multi()
      .del(`emq:{q}:job:${id}:processed`)
      .set(`emq:{q}:job:${id}:dependencies`, 2)
      .hset('emq:{q}:relayed', 'kids', before ?? '0-0')
      .exec();
    secondLook();
    await until(async () => (await echo.flows.dependencies('q', id)) === 1, { what: 'it to count again' });
    const diary = new Diary();
    diary.serve(echo, ['q', 'kids'], { parent: async (parent) => (await parent.children()).values });
    expect(await echo.jobs.wait('q', id)).toEqual({ [children[0]!.id]: 1, [children[1]!.id]: 'b' });
    expect(diary.count('parent')).toBe(1);
  });

  it('is counted once where children run again, because their queue has lost that they had run', async () => {
    const { echo, secondLook } = await skewed();
    const children = [...kids('a', 'b'), node('slow', 'slow')];
    const { id } = await echo.flows.add(node('q', 'parent', children, kept));
    const diary = new Diary();
    diary.serve(echo, ['kids']);
    await until(async () => (await echo.flows.dependencies('q', id)) === 1, { what: 'two to count' });
    await stage.control.del(...(await stage.control.keys('emq:{kids}:*')));
    secondLook();
    // One beat until the second look, and another for a consumer whose place among the hungry was lost too.
    await until(() => diary.names.length === 4, { what: 'both to run again', timeoutMs: 10_000 });
    await until(async () => (await unapplied(stage.control, ['q', 'kids'])).length === 0, {
      what: 'all to be applied',
    });
    expect(await echo.flows.dependencies('q', id)).toBe(1);
    expect((await echo.jobs.get('q', id))?.state).toBe('awaiting_children');
    diary.serve(echo, ['q', 'slow']);
    await echo.jobs.wait('q', id);
    expect(diary.count('parent')).toBe(1);
  });

  it('goes on after everything was lost, under the same process', async () => {
    const { echo } = await skewed();
    const diary = new Diary();
    diary.serve(echo, ['q', 'kids']);
    const flow = () => echo.flows.add(node('q', 'parent', kids('a', 'b'), kept));
    await echo.jobs.wait('q', (await flow()).id);
    await stage.server.flush();
    await echo.jobs.wait('q', (await flow()).id);
    expect(diary.count('parent')).toBe(2);
  });

  it('reaches the others while one target cannot take it, which has it once it can', async () => {
    const complaints: EchoError[] = [];
    const { echo } = await skewed({ onError: (error) => complaints.push(error) });
    await stage.control.set('emq:{stuck}:relayed', 'something else');
    const started = performance.now();
    const first = numbers(150).map((i) => node('stuck', `${i}`));
    const { id } = await echo.flows.add(node('q', 'blocked', first, kept));
    for (const i of numbers(150)) await echo.flows.add(node('q', `also ${i}`, [node('stuck', `of ${i}`)]));
    const fine = await echo.flows.add(node('q', 'fine', kids('a', 'b'), kept));
    const diary = new Diary();
    diary.serve(echo, ['q', 'kids', 'stuck'], {}, { concurrency: 50 });
    await echo.jobs.wait('q', fine.id);
    expect(diary.names.sort()).toEqual(['a', 'b', 'fine']);
    expect(complaints.map(({ code }) => code)).toContain('EMQTYPE');
    // The pauses between them double up to 4 s.
    expect(complaints.length).toBeLessThan(5 + (performance.now() - started) / 4_000);
    await stage.control.del('emq:{stuck}:relayed');
    await echo.jobs.wait('q', id);
    await until(() => diary.names.length === 3 + 151 + 300, {
      what: 'all that was blocked',
      progress: () => diary.names.length,
    });
    expect(new Set(diary.names).size).toBe(diary.names.length);
  });

  it('reaches the others when somebody has put nonsense among it', async () => {
    const { echo } = await skewed({ onError: () => {} });
    const nonsense = await stage.control.xadd('emq:{q}:outbox', '*', 'to', 'bad', 'kind', 'what', 'is', 'this');
    const noQueue = await stage.control.xadd('emq:{q}:outbox', '*', 'a', 'b');
    const { id } = await echo.flows.add(node('q', 'parent', kids('a'), kept));
    const diary = new Diary();
    diary.serve(echo, ['q', 'kids']);
    await echo.jobs.wait('q', id);
    await stage.control.xdel('emq:{q}:outbox', nonsense!, noQueue!);
  });

  it('is delivered by a process that closes behind its last job, where nobody else serves the queue', async () => {
    const echo = await stage.connect();
    const worker = await stage.connect();
    const [diary, end] = [new Diary(), latch()];
    diary.serve(worker, ['kids'], { a: () => end.opened });
    diary.serve(echo, ['q']);
    const { id } = await echo.flows.add(node('q', 'parent', kids('a'), kept));
    await diary.began('a');
    const closed = worker.close();
    end.open();
    await closed;
    await echo.jobs.wait('q', id, { timeoutMs: 20_000 });
    expect(await stage.control.exists('emq:{kids}:leader')).toBe(0);
  });

  it('is delivered where jobs are claimed and settled by hand, and nobody leads the queue', async () => {
    const { jobs, flows } = await stage.connect();
    const policy = { parentPolicy: 'ignore' } as const;
    const names = ['complete', 'retry', 'release', 'reap', 'trim'];
    const children = names.map((name) => node('kids', name, [], policy));
    const { id } = await flows.add(node('q', 'parent', children, kept));
    await pending({ jobs } as EchoMq, 'kids', 5);
    const [complete, retry, release, reap, trim] = await jobs.claim('kids', { leaseMs: 60_000, count: 5 });
    expect(trim!.name).toBe('trim');
    const counted = (n: number) => until(async () => (await flows.dependencies('q', id)) === n, { what: `${n} left` });
    await jobs.complete('kids', complete!.id, complete!.token);
    await counted(4);
    await jobs.retry('kids', retry!.id, retry!.token, { maxAttempts: 1 });
    await counted(3);
    await jobs.cancel('kids', release!.id);
    await jobs.release('kids', release!.id, release!.token);
    await counted(2);
    await stage.control.zadd('emq:{kids}:active', 'XX', 1, reap!.id);
    await jobs.reap('kids', { maxStalls: 0 });
    await counted(1);
    await jobs.retry('kids', trim!.id, trim!.token, { maxAttempts: 0 });
    await counted(0);
    expect((await jobs.get('q', id))?.state).toBe('pending');
  });

  it.each(['apply', 'HSET', 'XRANGE'])('is applied once when the connection is lost behind each %s', async (what) => {
    const proxy = await stage.proxy();
    const relaying = await stage.connect({ connection: proxy.url, onError: () => {} });
    const echo = await stage.connect();
    const diary = new Diary();
    diary.serve(relaying, ['kids'], {}, { leaseMs: 1000 }); // a claim may be lost with the connection
    diary.serve(echo, ['q']);
    const text = what === 'apply' ? hashOf('apply') : `\r\n${what}\r\n`;
    let lost = 0;
    const cutting = async (): Promise<void> => {
      await proxy.passAndDropReply(text);
      if (++lost < 4) await cutting();
    };
    const cut = cutting();
    const flows: string[] = [];
    while (lost < 4)
      flows.push((await relaying.flows.add(node('q', `parent ${flows.length}`, kids('a', 'b'), kept))).id);
    await cut;
    for (const id of flows) await echo.jobs.wait('q', id);
    const parents = diary.names.filter((name) => name.startsWith('parent'));
    expect(new Set(parents).size).toBe(flows.length);
    expect(parents).toHaveLength(flows.length);
  });
});
