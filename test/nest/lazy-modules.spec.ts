import { describe, expect, it } from '@jest/globals';
import { Injectable, type OnModuleInit, UseGuards } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Consumers, EchoRegistrationError, Job, Jobs, OnJob, Processor } from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, gate, moduleOf, turns, useApps } from './apps.js';

let ran: string[] = [];

@Processor('mail', { concurrency: 3 })
class Mail {
  @OnJob('welcome')
  welcome(): void {
    ran.push('welcome');
  }
}

@Processor('mail')
class MoreMail {
  @OnJob('digest')
  digest(): void {
    ran.push('digest');
  }
}

@Injectable()
class Dependency {
  readonly what = 'image';
}

@Processor('media')
@UseGuards({ canActivate: () => ran.push('guard') > 0 })
class Media {
  constructor(private readonly dependency: Dependency) {}

  @OnJob('resize')
  resize(_job: Job): void {
    ran.push(this.dependency.what);
  }
}

const MailModule = moduleOf({ providers: [Mail] }, 'MailModule');
const MediaModule = moduleOf({ providers: [Media, Dependency] }, 'MediaModule');

describe('a module that is loaded late', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it('has its processors served once it is loaded, on a queue of their own and on one that runs already', async () => {
    ran = [];
    const app = await apps.boot({ imports: [MailModule] });
    const [jobs, consumers, loader] = [app.get(Jobs), app.get(Consumers), app.get(LazyModuleLoader)];
    await jobs.enqueueMany('media', [{ name: 'resize' }]);
    const mail = consumers.of('mail');
    expect(consumers.queues).toEqual(['mail']);

    const moduleRef = await loader.load(() => MediaModule);
    expect(moduleRef.get(Media)).toBeInstanceOf(Media);
    await until(() => ran.length === 2, { what: 'the job that waited' });
    expect(ran).toEqual(['guard', 'image']);

    await loader.load(async () => moduleOf({ providers: [MoreMail] }));
    await jobs.enqueueMany('mail', [{ name: 'digest' }, { name: 'welcome' }]);
    await until(() => ran.length === 4, { what: 'jobs of both' });
    expect(ran.slice(2).sort()).toEqual(['digest', 'welcome']);
    expect(consumers.of('mail')).toBe(mail);
    expect(consumers.queues).toEqual(['mail', 'media']);
    expect(apps.log.warn).toEqual([]);
  });

  it('changes nothing when it has no processor, or is loaded again', async () => {
    ran = [];
    const app = await apps.boot({ imports: [MailModule] });
    const loader = app.get(LazyModuleLoader);
    await loader.load(() => moduleOf({ providers: [Dependency] }));
    await loader.load(() => MediaModule);
    await loader.load(() => MediaModule);
    await app.get(Jobs).enqueueMany('media', [{ name: 'resize' }, { name: 'resize' }]);
    await until(async () => (await app.get(Jobs).counts('media')).metrics.completed === 2, { what: 'the jobs' });
    expect(ran).toEqual(['guard', 'image', 'guard', 'image']);
  });

  it('may be loaded while the app boots; no job runs before that is over', async () => {
    ran = [];
    let early: string[] | undefined;
    @Injectable()
    class Loading implements OnModuleInit {
      constructor(
        private readonly loader: LazyModuleLoader,
        private readonly jobs: Jobs,
      ) {}
      async onModuleInit(): Promise<void> {
        await this.loader.load(() => MediaModule);
        await this.jobs.enqueue('media', 'resize');
      }
      async onApplicationBootstrap(): Promise<void> {
        await this.jobs.counts('media');
        early = [...ran];
      }
    }
    const factory = {
      provide: 'loaded',
      inject: [LazyModuleLoader],
      useFactory: (loader: LazyModuleLoader) => loader.load(() => MailModule),
    };
    const app = await apps.boot({ providers: [Loading, factory] });
    await app.get(Jobs).enqueue('mail', 'welcome');
    await until(() => ran.length === 3, { what: 'both jobs' });
    expect(early).toEqual([]);
    expect([...ran].sort()).toEqual(['guard', 'image', 'welcome']);
  });

  it('is left alone while it is being loaded, when another is loaded meanwhile', async () => {
    ran = [];
    const slow = gate<Dependency>();
    const Slow = moduleOf({ providers: [Media, { provide: Dependency, useFactory: () => slow.opened }] }, 'Slow');
    const app = await apps.boot({});
    const [jobs, consumers, loader] = [app.get(Jobs), app.get(Consumers), app.get(LazyModuleLoader)];
    await jobs.enqueue('media', 'resize');
    const loading = loader.load(() => Slow);
    await turns();
    await loader.load(() => MailModule);
    expect(consumers.queues).toEqual(['mail']);
    slow.open(new Dependency());
    await loading;
    await until(() => ran.length === 2, { what: 'the job that waited' });
    expect(ran).toEqual(['guard', 'image']);
  });

  it('is refused, as a rejection of load(), when what it brings cannot be served; what ran goes on', async () => {
    @Processor('mail')
    class Again {
      @OnJob('welcome')
      welcome(): void {}
    }
    @Processor('mail', { concurrency: 9 })
    class Other {
      @OnJob('other')
      other(): void {}
    }
    for (const [type, message] of [
      [Again, "queue 'mail': 'welcome' is handled by Mail.welcome in MailModule and by Again.welcome in Late"],
      [Other, "'concurrency' differs between Mail in MailModule and Other in Late"],
    ] as const) {
      ran = [];
      const app = await apps.boot({ imports: [MailModule] });
      const error = await failure(app.get(LazyModuleLoader).load(() => moduleOf({ providers: [type] }, 'Late')));
      expect(error).toBeInstanceOf(EchoRegistrationError);
      expect(error.message).toContain(message);
      await app.get(Jobs).enqueue('mail', 'welcome');
      await until(() => ran.length === 1, { what: 'a job of the old ones' });
      await app.close();
    }
  });

  it('starts nothing in an app that only enqueues, or has begun to shut down', async () => {
    ran = [];
    const producer = await apps.boot({}, { consume: false });
    await producer.get(LazyModuleLoader).load(() => MediaModule);
    expect(producer.get(Consumers).queues).toEqual([]);
    const app = await apps.boot({});
    const loader = app.get(LazyModuleLoader);
    await app.close();
    await loader.load(() => MediaModule);
    await producer.get(Jobs).enqueue('media', 'resize');
    expect((await producer.get(Jobs).counts('media')).pending).toBe(1);
    expect(app.get(Consumers).queues).toEqual([]);
  });
});
