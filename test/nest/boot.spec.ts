import { expect, it } from '@jest/globals';
import type { INestApplicationContext } from '@nestjs/common';
import { Consumers, EchoStateError, type Job, Jobs, OnJob, Processor } from '../../lib/index.js';
import { freePort } from '../../scripts/server/free-port.js';
import { RedisProcess } from '../../scripts/server/redis-process.js';
import { describeWithProcess } from '../support/availability.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, moduleOf, turns, useApps } from './apps.js';

const ran: string[] = [];

@Processor('mail')
class Mail {
  @OnJob()
  run({ name }: Job): void {
    ran.push(name);
  }
}

@Processor('files')
class Files {
  @OnJob()
  run({ name }: Job): void {
    ran.push(name);
  }
}

describeWithProcess('the boot', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it("goes on without a server where onBoot is 'wait': consumers join once it is there (C168)", async () => {
    ran.length = 0;
    const port = await freePort();
    const connection = `redis://127.0.0.1:${port}`;
    const app = await apps.boot({ providers: [Mail] }, { connection, onBoot: 'wait', enqueueTimeoutMs: 60_000 });
    expect(app.get(Consumers).queues).toEqual(['mail']);
    const landing = app.get(Jobs).enqueue('mail', 'early');
    await until(() => apps.log.error.length > 0, { what: 'the trouble to be logged' });
    expect(apps.log.error[0]).toContain('ECHO_UNREACHABLE');
    const late = await RedisProcess.start({ port });
    try {
      await landing;
      await until(() => ran.length === 1, { what: 'the job to run' });
      expect(apps.log.log.some((line) => line.startsWith('the server is reached again after'))).toBe(true);
      await app.close();
    } finally {
      await late.stop();
    }
  });

  it('starts no consumer with autoStart: false, until it is told to', async () => {
    ran.length = 0;
    const app = await apps.boot({ providers: [Mail, Files] }, { autoStart: false });
    const consumers = app.get(Consumers);
    await app.get(Jobs).enqueueMany('mail', [{ name: 'mail 1' }]);
    await app.get(Jobs).enqueueMany('files', [{ name: 'file 1' }]);
    await turns();
    expect(consumers.queues).toEqual([]);
    expect(ran).toEqual([]);
    const why = "queue 'mail' has no consumer yet: with autoStart: false it waits for consumers.start('mail')";
    expect(() => consumers.of('mail')).toThrow(why);
    consumers.start('mail');
    await until(() => ran.length === 1, { what: 'the first job' });
    expect(ran).toEqual(['mail 1']);
    consumers.start();
    await until(() => ran.length === 2, { what: 'the second job' });
    expect(consumers.queues.sort()).toEqual(['files', 'mail']);
    expect(() => consumers.start('post')).toThrow(EchoStateError);
  });

  it('holds a start that comes before its end', async () => {
    ran.length = 0;
    const early = {
      provide: 'EARLY',
      inject: [Consumers],
      useFactory: (consumers: Consumers) => consumers.start('mail'),
    };
    const app = await apps.boot({ providers: [Mail, Files, early] }, { autoStart: false });
    expect(app.get(Consumers).queues).toEqual(['mail']);
  });

  it('starts nothing after the shutdown has begun', async () => {
    const app = await apps.boot({ providers: [Mail] }, { autoStart: false });
    const consumers = app.get(Consumers);
    await app.close();
    expect(consumers.start().queues).toEqual([]);
  });

  it('takes options for every queue, weaker than those of a processor and of the queue', async () => {
    @Processor('strong', { concurrency: 7, attempts: 9 })
    class Strong extends Mail {
      @OnJob()
      override run(): void {}
    }
    const app = await apps.boot(
      { providers: [Mail, Strong] },
      { defaults: { concurrency: 3, leaseMs: 30_000 }, queues: { strong: { attempts: 4 } } },
    );
    const consumers = app.get(Consumers);
    expect(consumers.of('mail').settings).toMatchObject({ concurrency: 3, leaseMs: 30_000, attempts: 3 });
    expect(consumers.of('strong').settings).toMatchObject({ concurrency: 7, leaseMs: 30_000, attempts: 4 });
    const error = await failure(apps.boot({}, { defaults: { concurency: 3 } as never }));
    expect(error.message).toContain("defaults: unknown option 'concurency'");
  });

  it('serves ten queues over three connections at most', async () => {
    const processors = Array.from({ length: 10 }, (_, i) => {
      const type = { [`Processor${i}`]: class extends Mail {} }[`Processor${i}`]!;
      Processor(`queue ${i}`)(type);
      return type;
    });
    const app = await apps.boot({ providers: processors });
    expect(app.get(Consumers).queues).toHaveLength(10);
    const clients = String(await server.client().call('CLIENT', 'LIST'));
    const ours = clients.split('\n').filter((line) => line.includes('name=echomq:'));
    expect(ours.length).toBeGreaterThan(0);
    expect(ours.length).toBeLessThanOrEqual(3);
  });

  it('may be repeated in one process, as hot reload does, and leaves nothing behind', async () => {
    const client = server.client();
    const count = async () =>
      String(await client.call('CLIENT', 'LIST'))
        .split('\n')
        .filter((line) => line.includes('name=echomq:')).length;
    const booted: INestApplicationContext[] = [];
    for (let round = 1; round <= 20; round++) {
      ran.length = 0;
      const app = await apps.boot({ imports: [moduleOf({ providers: [Mail] })] });
      booted.push(app);
      await app.get(Jobs).enqueue('mail', `round ${round}`);
      await until(() => ran.length === 1, { what: `round ${round}` });
      await app.close();
    }
    await until(async () => (await count()) === 0, { what: 'connections to end' });
    const left = (await client.keys('*')).filter((key) => !/version|nodes|metrics/.test(key));
    expect(left).toEqual([]); // nobody hungry, nobody leading, no job
  });
});
