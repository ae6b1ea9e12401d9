import { describe, expect, it } from '@jest/globals';
import { type AddedNode, type EchoMq, EchoStateError, type Job, WaitForChildren } from '../../../lib/core.js';
import { until } from '../../support/until.js';
import { hashOf } from '../hashes.js';
import { failure, latch } from '../jobs/stage.js';
import { Diary, node, useFlowStage } from './stage.js';

async function completed(echo: EchoMq, queue: string, times: number): Promise<void> {
  await until(async () => (await echo.jobs.counts(queue)).metrics.completed === times, { what: 'completions' });
}

/** A handler that adds children the first time, waits for them, and then answers what they did. */
const grows =
  (...children: ReturnType<typeof node>[]) =>
  async (job: Job) => {
    const { values } = await job.children();
    if (Object.keys(values).length > 0) return Object.values(values);
    await job.addChildren(children);
    throw new WaitForChildren();
  };

describe('a parent that adds children while it runs', () => {
  const stage = useFlowStage();

  it('waits for them without holding its slot, and runs again with their values; it is charged once', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const [one, two] = [node('q', 'one', [node('kids', 'below')]), node('kids', 'two')];
    diary.serve(echo, ['q', 'kids'], { parent: grows(one, two) }, { concurrency: 1, attempts: 1 });
    expect(((await echo.jobs.enqueueAndWait('q', 'parent', undefined)) as string[]).sort()).toEqual(['one', 'two']);
    expect(diary.names.sort()).toEqual(['below', 'one', 'parent', 'parent', 'two']);
    const runs = diary.jobs.filter(({ name }) => name === 'parent');
    expect(runs.map(({ attempts, attempt }) => [attempts, attempt])).toEqual([
      [1, 1],
      [2, 1],
    ]);
    expect(await echo.jobs.counts('q')).toMatchObject({ metrics: { failed: 0, retried: 0 } });
  });

  it('runs again at once when they have ended before it waits', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const parent = async (job: Job) => {
      if (job.attempts > 1) return 'again';
      const added = await job.addChildren([node('q', 'quick'), node('kids', 'quick')]);
      await until(async () => (await job.children()).outstanding === 0, { what: 'the quick ones to end' });
      expect(added.map(({ queue, name }) => [queue, name])).toEqual([
        ['q', 'quick'],
        ['kids', 'quick'],
      ]);
      throw new WaitForChildren();
    };
    diary.serve(echo, ['q', 'kids'], { parent }, { concurrency: 5 });
    expect(await echo.jobs.enqueueAndWait('q', 'parent', undefined)).toBe('again');
    expect(diary.count('quick')).toBe(2);
  });

  it('can do so again and again, and on top of those it came with', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const parent = async (job: Job) => {
      const count = Object.keys((await job.children()).values).length;
      if (count >= 7) return count;
      await job.addChildren([node('kids', `more ${count}`), node('q', `more ${count}`)]);
      throw new WaitForChildren();
    };
    diary.serve(echo, ['q', 'kids'], { parent });
    const { id } = await echo.flows.add(node('q', 'parent', [node('q', 'first')], { keepMs: 60_000 }));
    expect(await echo.jobs.wait('q', id)).toBe(7);
    expect(diary.count('parent')).toBe(4);
  });

  it('may go on without waiting: they run as any job, and nobody counts them', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const parent = async (job: Job) => void (await job.addChildren([node('q', 'child'), node('kids', 'child')]));
    diary.serve(echo, ['q', 'kids'], { parent });
    await echo.jobs.enqueue('q', 'parent');
    await completed(echo, 'q', 2);
    await completed(echo, 'kids', 1);
    expect(diary.count('child')).toBe(2);
  });

  it('lists them in its children when one of them dies: by its policy, once it waits', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const added = latch<readonly AddedNode[]>();
    const parent = async (job: Job) => {
      added.open(await job.addChildren([node('q', 'bad', [], { attempts: 1 }), node('kids', 'slow')]));
      throw new WaitForChildren();
    };
    const slow = latch();
    diary.serve(echo, ['q', 'kids'], { parent, bad: () => slow.opened.then(() => Promise.reject(new Error('bad'))) });
    const { id } = await echo.jobs.enqueue('q', 'parent');
    await until(async () => (await echo.jobs.get('q', id))?.state === 'awaiting_children', { what: 'it to wait' });
    slow.open();
    await until(async () => (await echo.jobs.get('q', id))?.state === 'dead', { what: 'it to die' });
    const [bad] = await added.opened;
    expect((await echo.jobs.get('q', id))?.lastError).toContain(`child q|${bad!.id}: Error: bad`);
  });

  it('is refused children once its claim is over', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const goOn = latch();
    const errors: Error[] = [];
    const parent = async (job: Job) => {
      if (job.attempts > 1) return;
      await goOn.opened;
      errors.push(await failure(job.addChildren([node('q', 'child'), node('kids', 'child')])));
    };
    diary.serve(echo, ['q', 'kids'], { parent }, { leaseMs: 100_000, concurrency: 2 });
    const { id } = await echo.jobs.enqueue('q', 'parent');
    await diary.began('parent');
    await stage.control.zadd('emq:{q}:active', 'XX', 1, id); // its lease has lapsed
    await echo.jobs.reap('q');
    await diary.began('parent', 2);
    goOn.open();
    await until(() => errors.length > 0, { what: 'the refusal' });
    expect(errors[0]).toBeInstanceOf(EchoStateError);
    expect(errors[0]).toMatchObject({ code: 'ECHO_STALE', message: expect.stringContaining('its claim is over') });
    await completed(echo, 'q', 1);
    expect(diary.count('child')).toBe(0);
  });

  it('is refused what makes no sense, and told where', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const errors: Error[] = [];
    const parent = async (job: Job) => {
      const wrong = [node('q', 'a'), node('q', '')];
      errors.push(await failure(job.addChildren(wrong)));
      errors.push(await failure(job.addChildren({} as never)));
      errors.push(await failure(job.addChildren([node('q', 'itself', [], { id: job.id })])));
      errors.push(await failure(job.addChildren([node('kids', 'x', [node('q', 'deep', [], { id: job.id })])])));
      expect(await job.addChildren([])).toEqual([]);
    };
    diary.serve(echo, ['q'], { parent });
    await echo.jobs.enqueueAndWait('q', 'parent', undefined);
    expect(errors.map(({ message }) => message)).toEqual([
      expect.stringContaining("children[1]: a job's name"),
      'addChildren takes an array, got object',
      expect.stringMatching(/^children\[0]: job JOB\w+ would be its own descendant$/),
      expect.stringMatching(/^children\[0]\.children\[0]: job JOB\w+ would be its own descendant$/),
    ]);
    expect(diary.names).toEqual(['parent']);
  });

  it('adds them once when the answer is lost', async () => {
    const proxy = await stage.proxy();
    const echo = await stage.connect({ connection: proxy.url, onError: () => {} });
    const diary = new Diary();
    const parent = async (job: Job) => {
      if (job.attempts > 1) return Object.keys((await job.children()).values).length;
      const lost = proxy.passAndDropReply(hashOf('land'));
      const children = await job.addChildren([node('q', 'child'), node('kids', 'child')]);
      await lost;
      expect(children).toHaveLength(2);
      throw new WaitForChildren();
    };
    diary.serve(echo, ['q', 'kids'], { parent });
    await echo.flows.add(node('other', 'script is loaded'));
    const { id } = await echo.jobs.enqueue('q', 'parent', undefined, { keepMs: 60_000 });
    expect(await echo.jobs.wait('q', id)).toBe(2);
    expect(diary.count('child')).toBe(2);
  });

  it('that is asked to stop while it waits is not there to stop; while it runs, it dies when it would wait', async () => {
    const echo = await stage.connect();
    const diary = new Diary();
    const goOn = latch();
    const parent = async (job: Job) => {
      await job.addChildren([node('slow', 'child')]);
      await goOn.opened;
      throw new WaitForChildren();
    };
    diary.serve(echo, ['q'], { parent });
    const { id } = await echo.jobs.enqueue('q', 'parent');
    await diary.began('parent');
    await until(async () => (await echo.flows.dependencies('q', id)) === 1, { what: 'its child' });
    expect(await echo.jobs.cancel('q', id)).toBe('stopping');
    goOn.open();
    await until(async () => (await echo.jobs.get('q', id))?.state === 'dead', { what: 'it to die' });
    expect((await echo.jobs.get('q', id))?.lastError).toBe('cancelled');
    const { id: waiting } = await echo.flows.add(node('q', 'waits', [node('slow', 'child')]));
    expect(await echo.jobs.cancel('q', waiting)).toBe('wrong_state');
  });
});
