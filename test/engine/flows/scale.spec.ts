import { beforeEach, describe, expect, it } from '@jest/globals';
import type { ChildrenReport, FlowNode, Job } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { numbers } from '../jobs/stage.js';
import { Diary, node, useFlowStage } from './stage.js';

const CHILDREN = 20_000;
/** What one step may take of the server. */
const BOUND_MS = 50;
/**
 * SLOWLOG shows time that passed, in which a busy machine may have done something else: now and then, and not for long. A step
 * that is not bounded takes a second with so many children.
 */
const DISTURBED = { share: 0.01, mostMs: 500 };
const MINUTES = 60_000;

describe('a flow', () => {
  const stage = useFlowStage();
  beforeEach(async () => {
    await stage.control.config('SET', 'slowlog-log-slower-than', '5000');
    await stage.control.config('SET', 'slowlog-max-len', '10000');
    await stage.control.slowlog('RESET');
    await stage.control.config('RESETSTAT');
  });

  /** Commands of ours that took longer than the bound, more than are to be put down to the machine, with the ms they took. */
  async function tooLong(): Promise<string[]> {
    const entries = (await stage.control.slowlog('GET', 10_000)) as [number, number, number, string[]][];
    const ours = entries.filter(([, , , args]) => /^(evalsha|eval|xrange|xdel|[hs]scan)$/i.test(args[0]!));
    if (process.env.ECHOMQ_FIGURES) {
      const longest = ours.sort(([, , a], [, , b]) => b - a).slice(0, 5);
      process.stderr.write(
        `longest: ${longest.map(([, , us, args]) => `${us / 1000} ms ${args.slice(1, 4)}`).join('; ')}\n`,
      );
    }
    const stats = await stage.control.info('commandstats');
    const calls = Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
    const slow = ours.filter(([, , us]) => us > BOUND_MS * 1000);
    const few = slow.length <= 3 + calls * DISTURBED.share;
    return slow
      .filter(([, , us]) => !few || us > DISTURBED.mostMs * 1000)
      .map(([, , us, args]) => `${us} us ${args.slice(0, 5).join(' ')}`);
  }

  it.each([
    ['its own queue', 'q'],
    ['another queue', 'kids'],
  ])(
    'of 20,000 children in %s runs its parent once, with all their values; no step holds the server for long (C108)',
    async (_where, queue) => {
      const echo = await stage.connect({ requestTimeoutMs: 60_000 });
      let report: ChildrenReport | undefined;
      const diary = new Diary();
      const parent = async (job: Job) => {
        report = await job.children();
      };
      diary.serve(echo, [...new Set(['q', queue])], { parent, child: (job) => job.data }, { concurrency: 200 });
      const children = numbers(CHILDREN).map((data) => ({ queue, name: 'child', data }));
      const { id, children: added } = await echo.flows.add({ queue: 'q', name: 'parent', children });
      await echo.jobs.wait('q', id, { timeoutMs: 8 * MINUTES });
      expect(diary.count('parent')).toBe(1);
      expect(diary.names).toHaveLength(CHILDREN + 1);
      expect(report).toMatchObject({ outstanding: 0, ignored: {}, failed: {} });
      expect(report!.values).toEqual(Object.fromEntries(added.map((child, i) => [child.id, i])));
      expect(await tooLong()).toEqual([]);
    },
    10 * MINUTES,
  );

  it(
    'of 20,000 children is read and removed in bounded steps',
    async () => {
      const echo = await stage.connect({ requestTimeoutMs: 60_000 });
      const children = numbers(CHILDREN).map((i) => node(i % 2 ? 'q' : 'kids', 'child'));
      const { id } = await echo.flows.add(node('q', 'parent', children));
      const tree = await echo.flows.tree('q', id);
      expect(tree.children.length + tree.more).toBe(CHILDREN);
      expect(tree.children).toHaveLength(999);
      expect(await echo.jobs.remove('q', id, { tree: true })).toBe('ok');
      expect(await stage.control.keys('emq:*:job:*')).toEqual([]);
      expect(await tooLong()).toEqual([]);
    },
    10 * MINUTES,
  );

  it.each([
    [100, 'in one queue', ['q']],
    [500, 'in one queue', ['q']],
    [100, 'that goes back and forth between two queues', ['q', 'kids']],
    [500, 'that goes around three queues', ['q', 'kids', 'others']],
  ])('may be a chain %d deep %s', async (depth, _where, queues) => {
    const echo = await stage.connect();
    const chain = numbers(depth).reduce<FlowNode | undefined>(
      (below, i) => node(queues[i % queues.length]!, `${i}`, below ? [below] : [], { keepMs: 60_000 }),
      undefined,
    )!;
    const diary = new Diary();
    diary.serve(echo, queues);
    const { id, queue } = await echo.flows.add(chain);
    await echo.jobs.wait(queue as string, id);
    expect(diary.names).toEqual(numbers(depth).map(String));
  });

  it('may die, and be brought back, along a chain of 500', async () => {
    const echo = await stage.connect();
    const chain = numbers(499).reduce<FlowNode>(
      (below, i) => node(i % 2 ? 'q' : 'kids', `${i}`, [below]),
      node('q', 'leaf'),
    );
    const diary = new Diary();
    let broken = true;
    const leaf = () => {
      if (broken) throw new Error('broken');
      return 'mended';
    };
    diary.serve(echo, ['q', 'kids'], { leaf }, { attempts: 1 });
    const { id, queue } = await echo.flows.add(chain);
    let reached = ''; // it lands level by level, and then falls so
    const died = async () => {
      reached = JSON.stringify(await Promise.all(['q', 'kids'].map((each) => echo.jobs.counts(each))));
      return (await echo.jobs.get(queue as string, id))?.state === 'dead';
    };
    await until(died, { what: 'the root to die', progress: () => reached });
    broken = false;
    const [dead] = (await echo.jobs.list('q', 'dead', { limit: 1000 })).jobs.filter(({ name }) => name === 'leaf');
    await echo.jobs.reprocess('q', dead!.id);
    await until(() => diary.count('498') === 1, {
      what: 'the root to run',
      progress: () => diary.names.length,
    });
    expect(diary.names).toEqual(['leaf', 'leaf', ...numbers(499).map(String)]);
  });

  it('among 1,000 that share their consumers runs as if it were alone', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const parent = async (job: Job) => Object.values((await job.children()).values);
    diary.serve(echo, ['q', 'kids'], { parent, child: (job) => job.data }, { concurrency: 50, keepMs: 60_000 });
    const flows = await echo.flows.addMany(
      numbers(1_000).map((i) => ({
        queue: 'q',
        name: 'parent',
        children: ['kids', 'q', 'kids'].map((queue, k) => ({ queue, name: 'child', data: 3 * i + k })),
      })),
    );
    const results = await Promise.all(flows.map(({ id }) => echo.jobs.wait('q', id)));
    expect(results).toEqual(numbers(1_000).map((i) => [3 * i, 3 * i + 1, 3 * i + 2]));
    expect(diary.count('parent')).toBe(1_000);
    expect(diary.count('child')).toBe(3_000);
  });
});
