import { describe, expect, it } from '@jest/globals';
import { Discard, type Job, Jobs, OnJob, Processor, Snooze } from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { moduleOf, useApps } from './apps.js';
import { useKits } from './testing/kits.js';

let ran: string[] = [];

@Processor('media', { concurrency: 4 })
class Images {
  @OnJob('image')
  async image({ data }: Job<number>): Promise<void> {
    ran.push(`image ${data}`);
  }

  @OnJob('icon')
  @OnJob('avatar')
  small({ name, data }: Job<number>): void {
    ran.push(`small ${name} ${data}`);
  }
}

@Processor('media')
class Videos {
  private readonly title = 'video';

  @OnJob('video')
  video({ data }: Job<number>): void {
    ran.push(`${this.title} ${data}`);
  }
}

@Processor('media')
class Rest {
  @OnJob()
  rest({ name, data }: Job<number>): void {
    ran.push(`rest ${name} ${data}`);
  }
}

describe('jobs of one queue', () => {
  const server = useServer();
  const apps = useApps(server);
  const kits = useKits(server);
  guardLeaks();

  const run = async (jobs: Jobs, names: string[]) => {
    ran = [];
    await jobs.enqueueMany(
      'media',
      names.map((name, data) => ({ name, data })),
    );
  };

  it('go to the method that claims their name, whichever class and module it is in', async () => {
    const modules = [Images, Videos, Rest].map((type) => moduleOf({ providers: [type] }));
    const { kit, jobs } = await kits.boot({ imports: modules });
    const kinds = ['image', 'video', 'icon', 'avatar', 'audio'];
    const names = Array.from({ length: 500 }, (_, i) => kinds[i % kinds.length]!);
    await run(jobs, names);
    expect(await kit.drain()).toMatchObject({ completed: 500, errors: [] });
    const heads: Record<string, string> = { icon: 'small icon', avatar: 'small avatar', audio: 'rest audio' };
    expect(ran).toEqual(names.map((name, i) => `${heads[name] ?? name} ${i}`));
  });

  it('whose name nobody handles wait 5 s without being charged, and are told of once per name', async () => {
    const { kit, jobs } = await kits.boot({ providers: [Images] }, {}, {}, apps.logger);
    await run(jobs, ['audio', 'image', 'audio', 'toString']);
    expect(await kit.drain()).toMatchObject({ completed: 1, unhandled: 3 });
    expect(ran).toEqual(['image 1']);
    expect(apps.log.warn).toEqual([
      `queue 'media': no handler here for jobs named "audio"; each is put back every 5 s until a process handles it`,
      `queue 'media': no handler here for jobs named "toString"; each is put back every 5 s until a process handles it`,
    ]);
    const [job] = await kit.assertEnqueued({ queue: 'media', delayMs: 5000, count: 3 });
    expect(job).toMatchObject({ attempts: 1, uncharged: 1, lastError: undefined });
  });

  it('that nobody handled run in the app that can', async () => {
    const old = await apps.boot({ providers: [Images] });
    await run(old.get(Jobs), ['video']);
    await until(async () => (await old.get(Jobs).counts('media')).scheduled === 1, { what: 'it to be put back' });
    await old.close();
    const next = await apps.boot({ providers: [Images, Videos] });
    const [job] = (await next.get(Jobs).list('media', 'scheduled')).jobs;
    await next.get(Jobs).reschedule('media', job!.id, { delayMs: 0 });
    await until(() => ran.length > 0, { what: 'the video' });
    expect(ran).toEqual(['video 0']);
  });

  it('end as their handler says: a result, a failure, a burial, a snooze', async () => {
    @Processor('ends', { attempts: 2, backoff: { type: 'fixed', delayMs: 0 }, keepMs: 60_000 })
    class Ends {
      tries = 0;

      @OnJob('result')
      result(job: Job<{ a: number }>): { b: number } {
        return { b: job.data.a + 1 };
      }

      @OnJob('failure')
      async failure(): Promise<void> {
        this.tries += 1;
        throw new Error('no luck');
      }

      @OnJob('burial')
      burial(): void {
        throw new Discard('not for us');
      }

      @OnJob('snooze')
      snooze(): void {
        throw new Snooze(60_000);
      }
    }
    const { kit, jobs, module } = await kits.boot({ providers: [Ends] });
    const { id } = await jobs.enqueue('ends', 'result', { a: 1 });
    await jobs.enqueueMany('ends', [{ name: 'failure' }, { name: 'burial' }, { name: 'snooze' }]);
    expect(await kit.drain()).toMatchObject({ completed: 1, failed: 1, dead: 2, snoozed: 1 });
    expect((await jobs.get('ends', id))?.result?.toString()).toBe('{"b":2}');
    expect(module.get(Ends).tries).toBe(2);
    const { jobs: dead } = await jobs.list('ends', 'dead');
    expect(dead.map(({ lastError }) => lastError?.split('\n')[0])).toEqual(['Error: no luck', 'not for us']);
  });
});
