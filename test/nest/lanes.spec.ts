import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import {
  defineQueue,
  EchoMqModule,
  EchoRegistrationError,
  getLanesToken,
  InjectLanes,
  Job,
  Jobs,
  type LaneBy,
  Lanes,
  OnJob,
  Processor,
  RateLimited,
  Schedules,
} from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, moduleOf, useApps } from './apps.js';

const byTenant: LaneBy = ({ data }) => data?.tenant;
const Defined = defineQueue<{ welcome: { tenant: string } }>('defined', { lane: ({ data }) => data.tenant });

let ran: string[] = [];

@Processor('mail', { lane: byTenant, concurrency: 4 })
class Mails {
  @OnJob('welcome')
  welcome({ name, data }: Job<{ tenant: string }>): void {
    ran.push(`${name} ${data?.tenant}`);
  }

  @OnJob('digest', { cron: '0 0 1 1 *', data: { tenant: 'all' } })
  digest(): void {}
}

@Processor('mail')
class MoreMails {
  @OnJob('more')
  more({ attempt }: Job): void {
    ran.push(`more ${attempt}`);
    if (ran.length === 1) throw new RateLimited(50);
  }
}

@Processor(Defined)
class DefinedMails {
  @OnJob('welcome')
  welcome(): void {}
}

@Injectable()
class Tenants {
  constructor(
    readonly lanes: Lanes,
    @InjectLanes('second') readonly others: Lanes,
  ) {}
}

describe('a processor that chooses lanes', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it('does so for every job that its app enqueues to the queue, by whatever module, also without consumers', async () => {
    for (const consume of [true, false]) {
      const app = await apps.boot(
        { providers: [Mails, MoreMails] },
        { consume, autoStart: false, prefix: `p${consume}` },
      );
      const jobs = app.get(Jobs);
      const { id } = await jobs.enqueue('mail', 'welcome', { tenant: 'a' });
      expect((await jobs.get('mail', id))!.lane).toBe('a');
      const none = await jobs.enqueue('mail', 'more');
      expect((await jobs.get('mail', none.id))!.lane).toBeUndefined();
      expect(await app.get(Lanes).get('mail', 'a')).toMatchObject({ waiting: 1 });
    }
  });

  it('does so for the schedules of its methods', async () => {
    const app = await apps.boot({ providers: [Mails] });
    expect(await app.get(Schedules).get('mail', 'digest')).toMatchObject({ lane: 'all' });
  });

  it('has its definition do so, for the bare name of the queue too', async () => {
    const app = await apps.boot({ providers: [DefinedMails] }, { autoStart: false });
    const jobs = app.get(Jobs);
    for (const queue of ['defined', Defined] as const) {
      const { id } = await jobs.enqueue(queue as typeof Defined, 'welcome', { tenant: 'b' });
      expect((await jobs.get('defined', id))!.lane).toBe('b');
    }
  });

  it('runs the jobs of all lanes, and RateLimited gives a job back', async () => {
    ran = [];
    const app = await apps.boot({ providers: [Mails, MoreMails] });
    const jobs = app.get(Jobs);
    await jobs.enqueue('mail', 'more', { tenant: 'slow' });
    await until(() => ran.length === 1, { what: 'its first run' });
    await jobs.enqueue('mail', 'welcome', { tenant: 'x' });
    await until(() => ran.length === 3, { what: 'all' });
    expect(ran).toEqual(['more 1', 'welcome x', 'more 1']);
  });

  it('must be the only one: another function for the queue fails the boot, with both places named', async () => {
    @Processor('mail', { lane: () => 'other' })
    class Other {
      @OnJob('other')
      other(): void {}
    }
    @Processor(Defined, { lane: () => 'other' })
    class OtherDefined {
      @OnJob('welcome')
      welcome(): void {}
    }
    @Processor('mail', { lane: byTenant })
    class Same {
      @OnJob('same')
      same(): void {}
    }
    const two = await failure(apps.boot({ providers: [Mails, Other] }));
    expect(two).toBeInstanceOf(EchoRegistrationError);
    expect(two.message).toMatch(
      /queue 'mail': .* by Mails in RootModule and, by another function, by Other in RootModule/,
    );
    const defined = await failure(apps.boot({ providers: [OtherDefined] }));
    expect(defined).toBeInstanceOf(EchoRegistrationError);
    expect(defined.message).toMatch(/queue 'defined': .* by its definition and, by another function, by OtherDefined/);
    await apps.boot({ providers: [Mails, Same] });
    expect(() => Processor('mail', { lane: 'x' as never })(class Wrong {})).toThrow(
      /@Processor on Wrong: 'lane' is a function that answers a job's lane, got "x"/,
    );
  });
});

describe('Lanes', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it('are injected by class, by token and by the name of their instance', async () => {
    const second = EchoMqModule.forRoot(apps.options({ name: 'second', prefix: 'second' }));
    const app = await apps.boot({ imports: [second, moduleOf({ providers: [Tenants], exports: [Tenants] })] });
    const { lanes, others } = app.get(Tenants);
    expect(lanes).toBeInstanceOf(Lanes);
    expect(lanes).toBe(app.get(getLanesToken()));
    expect(others).toBe(app.get(getLanesToken('second')));
    expect(others).not.toBe(lanes);
    await lanes.configure('mail', 'a', { weight: 2 });
    expect((await lanes.get('mail', 'a')).settings).toEqual({ weight: 2 });
    expect((await others.get('mail', 'a')).settings).toEqual({});
  });
});
