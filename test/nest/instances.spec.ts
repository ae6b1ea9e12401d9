import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import {
  Consumers,
  EchoConfigError,
  EchoMqModule,
  EchoRegistrationError,
  getConsumersToken,
  getJobsToken,
  InjectJobs,
  type Job,
  Jobs,
  OnJob,
  Processor,
} from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, useApps } from './apps.js';

const ran: string[] = [];

@Processor('mail')
class Mail {
  @OnJob()
  run({ name }: Job): void {
    ran.push(`default ${name}`);
  }
}

@Processor('mail', { instance: 'reports' })
class ReportMail {
  @OnJob()
  run({ name }: Job): void {
    ran.push(`reports ${name}`);
  }
}

@Injectable()
class Both {
  constructor(
    readonly jobs: Jobs,
    @InjectJobs('reports') readonly reports: Jobs,
  ) {}
}

describe('an app with two servers', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  const reports = (more = {}) =>
    EchoMqModule.forRoot({ ...apps.options(), prefix: 'second', name: 'reports', ...more });

  it('keeps them apart by name: jobs, consumers and processors', async () => {
    ran.length = 0;
    const app = await apps.boot({ imports: [reports()], providers: [Mail, ReportMail, Both] });
    const both = app.get(Both);
    await both.jobs.enqueue('mail', 'one');
    await both.reports.enqueue('mail', 'two');
    await until(() => ran.length === 2, { what: 'both jobs to run' });
    expect([...ran].sort()).toEqual(['default one', 'reports two']);
    expect(app.get(getJobsToken('reports'))).toBe(both.reports);
    expect(app.get(getConsumersToken('reports'))).not.toBe(app.get(Consumers));
    expect(app.get<Consumers>(getConsumersToken('reports')).queues).toEqual(['mail']);
    const keys = await server.client().keys('*');
    expect(new Set(keys.map((key) => /^\{?(\w+)/.exec(key)![1]))).toEqual(new Set(['emq', 'second']));
  });

  it('has them computed by injection each on its own', async () => {
    ran.length = 0;
    const later = EchoMqModule.forRootAsync({
      name: 'reports',
      useFactory: async () => ({ ...apps.options(), prefix: 'second' }),
    });
    const app = await apps.boot({ imports: [later], providers: [ReportMail, Both] });
    await app.get(Both).reports.enqueue('mail', 'two');
    await until(() => ran.length === 1, { what: 'the job to run' });
    expect(ran).toEqual(['reports two']);
  });

  it('may have only named ones', async () => {
    const app = await apps.boot({ imports: [reports()], providers: [ReportMail] }, null);
    expect(app.get<Consumers>(getConsumersToken('reports')).queues).toEqual(['mail']);
    expect(() => app.get(Jobs)).toThrow();
  });

  it('opens none of them for good when one cannot be had', async () => {
    const error = await failure(
      apps.boot({ imports: [reports({ connection: 'redis://127.0.0.1:1', connectTimeoutMs: 50 })] }),
    );
    expect(error.message).toContain('gave up after 50 ms');
  });

  it('does not start with a processor whose instance is not there, and names both', async () => {
    const error = await failure(apps.boot({ providers: [ReportMail] }));
    expect(error).toBeInstanceOf(EchoRegistrationError);
    expect(error.message).toBe(
      "ReportMail in RootModule is @Processor('mail', { instance: 'reports' }), but no EchoMqModule.forRoot with name: 'reports' is imported",
    );
  });

  it('does not start with a processor of the nameless one where all have names', async () => {
    const error = await failure(apps.boot({ imports: [reports()], providers: [Mail] }, null));
    expect(error).toBeInstanceOf(EchoRegistrationError);
    expect(error.message).toContain(
      "Mail in RootModule is @Processor('mail'), but no EchoMqModule.forRoot without a name",
    );
  });

  it('is refused two of one name with different options, and a name that is none', async () => {
    const error = await failure(apps.boot({ imports: [reports(), reports({ prefix: 'third' })] }));
    expect(error).toBeInstanceOf(EchoConfigError);
    expect(error.message).toContain("EchoMqModule 'reports' is imported twice with different options");
    expect(() => EchoMqModule.forRoot({ ...apps.options(), name: '' })).toThrow("option 'name' must be a string");
  });
});
