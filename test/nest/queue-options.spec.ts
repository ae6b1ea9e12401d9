import { describe, expect, it } from '@jest/globals';
import {
  type ConsumerOptions,
  Consumers,
  EchoConfigError,
  EchoRegistrationError,
  OnJob,
  Processor,
} from '../../lib/index.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { failure, useApps } from './apps.js';

let made = 0;

/** A processor class with these options and a handler of its own. */
function processor(name: string, options?: ConsumerOptions, queue = 'mail') {
  const type = {
    [name]: class {
      run(): void {}
    },
  }[name]!;
  OnJob(`job ${made++}`)(type.prototype, 'run', Object.getOwnPropertyDescriptor(type.prototype, 'run')!);
  Processor(queue, options)(type);
  return type;
}

describe("the options of a queue's only consumer", () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  const refused = async (providers: ReturnType<typeof processor>[], queues?: Record<string, ConsumerOptions>) =>
    failure(apps.boot({ providers }, { queues }));

  it('are those of all its processors together', async () => {
    const providers = [
      processor('A', { concurrency: 5, backoff: { type: 'fixed', delayMs: 5 } }),
      processor('B', { leaseMs: 5000, backoff: { type: 'fixed', delayMs: 5 }, attempts: undefined }),
      processor('C', { record: true }),
    ];
    const app = await apps.boot({ providers });
    const { settings } = app.get(Consumers).of('mail');
    expect(settings).toMatchObject({
      concurrency: 5,
      leaseMs: 5000,
      attempts: 3,
      backoff: { delayMs: 5 },
      record: true,
    });
  });

  it('may not contradict each other', async () => {
    const error = await refused([processor('A', { concurrency: 5 }), processor('B', { concurrency: 6 })]);
    expect(error).toBeInstanceOf(EchoRegistrationError);
    expect(error.message).toContain("'concurrency' differs between A in RootModule and B in RootModule");
  });

  it('give way to those of the module, which also settles a contradiction', async () => {
    const providers = [processor('A', { concurrency: 5, attempts: 9 }), processor('B', { concurrency: 6 })];
    const app = await apps.boot({ providers }, { queues: { mail: { concurrency: 2 } } });
    expect(app.get(Consumers).of('mail').settings).toMatchObject({ concurrency: 2, attempts: 9 });
  });

  it('are refused with the name of the class when they make no sense', async () => {
    const zero = await refused([processor('Mailer', { concurrency: 0 })]);
    expect(zero).toBeInstanceOf(EchoConfigError);
    expect(zero.message).toBe("option 'Mailer.concurrency' must be a whole number from 1 to 10000, got 0");
    const misspelt = await refused([processor('Mailer', { concurency: 3 } as ConsumerOptions)]);
    expect(misspelt.message).toContain("Mailer: unknown option 'concurency'");
    const none = await refused([processor('Mailer', null as unknown as ConsumerOptions)]);
    expect(none.message).toBe('Mailer must be an object, got null');
  });

  it('are refused with the name of the queue when the module gives them', async () => {
    const error = await refused([processor('Mailer')], { mail: { leaseMs: 5 } });
    expect(error).toBeInstanceOf(EchoConfigError);
    expect(error.message).toContain("option 'queues.mail.leaseMs'");
  });

  it('are refused for a queue that no processor serves: its name is misspelt', async () => {
    const error = await refused([processor('Mailer')], { male: {} });
    expect(error).toBeInstanceOf(EchoConfigError);
    expect(error.message).toBe("option 'queues.male': no processor serves that queue. Served are: 'mail'");
  });

  it('may name queues that are served elsewhere in a process that only enqueues', async () => {
    await apps.boot({}, { consume: false, queues: { male: { concurrency: 3 } } });
    const error = await failure(apps.boot({}, { consume: false, queues: { male: { concurrency: -3 } } }));
    expect(error.message).toContain("option 'queues.male.concurrency'");
  });

  it('are not mistaken for what every object has', async () => {
    const app = await apps.boot({ providers: [processor('A', { concurrency: 2 }, 'constructor')] });
    expect(app.get(Consumers).of('constructor').settings.concurrency).toBe(2);
  });
});
