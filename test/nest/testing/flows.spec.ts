import { describe, expect, it } from '@jest/globals';
import { EchoMq, type Job, OnJob, Processor, WaitForChildren } from '../../../lib/index.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { failure } from '../apps.js';
import { useKits } from './kits.js';

let ran: string[] = [];

@Processor('parts')
class Parts {
  @OnJob('part')
  part({ data }: Job<number>): number {
    ran.push(`part ${data}`);
    return data;
  }
}

@Processor('sums')
class Sums {
  @OnJob('sum')
  async sum(job: Job): Promise<number> {
    const values = Object.values((await job.children()).values) as number[];
    const sum = values.reduce((a, b) => a + b, 0);
    ran.push(`sum ${sum}`);
    return sum;
  }

  @OnJob('grow')
  async grow(job: Job): Promise<string> {
    const { values } = await job.children();
    ran.push(`grow ${Object.keys(values).length}`);
    if (Object.keys(values).length > 0) return 'grown';
    await job.addChildren([{ queue: 'parts', name: 'part', data: 7 }]);
    throw new WaitForChildren();
  }
}

describe('the kit and flows', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();

  const boot = () => {
    ran = [];
    return kits.boot({ providers: [Parts, Sums] });
  };

  it('a drain runs a parent behind its children, whatever queues they are in', async () => {
    const { kit, module } = await boot();
    const part = (data: number) => ({ queue: 'parts', name: 'part', data });
    await module.get(EchoMq).flows.add({
      ...{ queue: 'sums', name: 'sum' },
      children: [part(1), { queue: 'sums', name: 'sum', children: [part(2), part(3)] }],
    });
    expect(await kit.drain()).toMatchObject({ completed: 5 });
    expect(ran.slice(0, 3).sort()).toEqual(['part 1', 'part 2', 'part 3']);
    expect(ran.slice(3)).toEqual(['sum 5', 'sum 6']);
    await module.close();
    expect(await server.client().keys('*')).toEqual([]);
  });

  it('a drain counts a parent that waits for children it has added, and runs it again behind them', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('sums', 'grow');
    expect(await kit.drain({ queue: 'sums' })).toMatchObject({ completed: 0, waiting: 1, snoozed: 0 });
    expect(await kit.drain()).toMatchObject({ completed: 2, waiting: 0 });
    expect(ran).toEqual(['grow 0', 'part 7', 'grow 1']);
  });

  it('an app whose consumers run is idle when the last parent has run', async () => {
    ran = [];
    const { kit, module } = await kits.boot({ providers: [Parts, Sums] }, {}, { autoStart: true });
    for (let flow = 1; flow <= 10; flow++) {
      await module.get(EchoMq).flows.add({
        ...{ queue: 'sums', name: 'sum' },
        children: [{ queue: 'parts', name: 'part', data: flow }],
      });
      await kit.idle();
      expect(ran.at(-1)).toBe(`sum ${flow}`);
    }
  });

  it('a performed job is told of the children that the test gives it', async () => {
    const { kit } = await boot();
    expect(await kit.performJob(Sums, 'sum')).toBe(0);
    expect(await kit.performJob(Sums, 'sum', null, { children: { values: { a: 1, b: 2 } } })).toBe(3);
    const unsaid = { outstanding: undefined, values: undefined, ignored: undefined, failed: undefined };
    expect(await kit.performJob(Sums, 'sum', null, { children: unsaid })).toBe(0);
    const error = await failure(kit.performJob(Sums, 'grow'));
    expect(error.message).toContain('a performed job is not on the server and can be given no children');
  });
});
