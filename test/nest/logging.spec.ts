import { describe, expect, it } from '@jest/globals';
import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { Consumers, Discard, EchoConfigError, EchoMqModule, Jobs, OnJob, Processor } from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, moduleOf, useApps } from './apps.js';

@Processor('mail', { attempts: 2, backoff: { type: 'fixed', delayMs: 0 } })
class Mail {
  @OnJob('boom')
  boom(): never {
    throw new Error('boom!\nsecond line');
  }

  @OnJob('refused')
  refused(): never {
    throw new Discard('no such address');
  }

  @OnJob("it's\nodd")
  odd(): never {
    throw {
      get message(): string {
        throw new Error('unreadable');
      },
    };
  }

  @OnJob('fine')
  fine(): void {}
}

/** What a newcomer sees of an app without having written a listener. */
describe('the log', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it('tells of every death, and at debug level of every attempt that has another behind it', async () => {
    const app = await apps.boot({ providers: [Mail] });
    const { id } = await app.get(Jobs).enqueue('mail', 'boom');
    await until(() => apps.log.warn.length === 1, { what: 'the death' });
    expect(apps.log.debug).toEqual([`queue 'mail': job ${id} 'boom' failed attempt 1 and runs again: Error: boom!`]);
    expect(apps.log.warn).toEqual([`queue 'mail': job ${id} 'boom' is dead after 2 attempts: Error: boom!`]);
    const refused = await app.get(Jobs).enqueue('mail', 'refused');
    await until(() => apps.log.warn.length === 2, { what: 'the second death' });
    expect(apps.log.warn[1]).toBe(`queue 'mail': job ${refused.id} 'refused' is dead after 1 attempt: no such address`);
  });

  it('stays on one line, whatever a name is and whatever is thrown', async () => {
    const app = await apps.boot({ providers: [Mail] });
    const { id } = await app.get(Jobs).enqueue('mail', "it's\nodd", undefined, { attempts: 1 });
    await until(() => apps.log.warn.length === 1, { what: 'the death' });
    const start = `queue 'mail': job ${id} 'it's\\nodd' is dead after 1 attempt: threw `;
    expect(apps.log.warn[0]!.startsWith(start)).toBe(true);
    expect(apps.log.warn[0]).not.toContain('\n');
  });

  it('tells when the server is reached again', async () => {
    await apps.boot({ providers: [Mail] });
    await server.client().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const back = () => apps.log.log.filter((line) => /^the server is reached again after \d+ m?s$/.test(line));
    await until(() => back().length > 0, { what: 'the return to be logged' });
  });

  it('leaves onReconnected to an app that wants it', async () => {
    const away: number[] = [];
    await apps.boot({ providers: [Mail] }, { onReconnected: (ms) => void away.push(ms) });
    await server.client().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until(() => away.length > 0, { what: 'the return to be told' });
    expect(apps.log.log.filter((line) => line.includes('reached again'))).toEqual([]);
  });

  it('says that there is no processor, unless none is wanted', async () => {
    const line = 'No @Processor found: this process only enqueues';
    await apps.boot({});
    expect(apps.log.log).toContain(line);
    apps.log.log.length = 0;
    await apps.boot({}, { consume: false });
    await apps.boot({ providers: [Mail] });
    expect(apps.log.log).not.toContain(line);
  });
});

describe('an import of EchoMqModule without forRoot', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it('fails the boot where there is no forRoot', async () => {
    const error = await failure(apps.boot({ imports: [EchoMqModule] }, null));
    expect(error).toBeInstanceOf(EchoConfigError);
    expect(error.message).toContain('EchoMqModule is imported without options');
  });

  it('does nothing beside one', async () => {
    const feature = moduleOf({ imports: [EchoMqModule], providers: [Mail] });
    const app = await apps.boot({ imports: [feature] });
    expect((await app.get(Jobs).enqueue('mail', 'fine')).status).toBe('landed');
  });
});

describe('a consumer that is asked for in vain', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  it.each([
    ['that this process only enqueues', [Mail], false, 'mail', 'only enqueues (consume: false)'],
    ['that no processor serves it', [Mail], true, 'post', "no @Processor serves queue 'post'. Served are: mail"],
    ['that there is no processor', [], true, 'mail', "no @Processor serves queue 'mail'. Served are: none"],
  ])('says %s', async (_, providers, consume, queue, message) => {
    const app = await apps.boot({ providers }, { consume });
    expect(() => app.get(Consumers).of(queue)).toThrow(message);
  });

  it('knows before the start what will be served', async () => {
    const said: string[] = [];
    @Injectable()
    class Early implements OnModuleInit, OnApplicationBootstrap {
      constructor(private readonly consumers: Consumers) {}
      onModuleInit = () => this.ask('post');
      onApplicationBootstrap = () => this.ask('mail');

      private ask(queue: string): void {
        try {
          this.consumers.of(queue);
        } catch (error) {
          said.push((error as Error).message);
        }
      }
    }
    await apps.boot({ providers: [Mail, Early] });
    expect(said).toEqual([
      expect.stringContaining("no @Processor serves queue 'post'"),
      expect.stringContaining('has no consumer yet'),
    ]);
  });
});
