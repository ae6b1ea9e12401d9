import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { EchoMqTestingModule, TestKit } from 'nestjs-echomq/testing';
import { AppModule } from '../src/app.module.js';
import { MailProcessor } from '../src/mail.processor.js';
import { MailService } from '../src/mail.service.js';
import { Outbox } from '../src/outbox.js';
import { guardLeaks } from './support/leaks.js';
import { useServer } from './support/server.js';

describe('a test of the app, with the test kit', () => {
  const server = useServer();
  let module: TestingModule;
  let kit: TestKit;
  let sent: string[];
  beforeEach(async () => {
    sent = [];
    module = await Test.createTestingModule({ imports: [AppModule, EchoMqTestingModule.forRoot()] })
      .overrideProvider(Outbox)
      .useValue({ send: async (mail: string) => sent.push(mail) })
      .compile();
    await module.init();
    kit = module.get(TestKit);
  });
  afterEach(() => module.close());
  guardLeaks();

  it('sees what was enqueued, and runs it when told to', async () => {
    await module.get(MailService, { strict: false }).welcome('Ada');
    await kit.assertEnqueued({ queue: 'mail', name: 'welcome', data: { to: 'Ada' }, count: 1 });
    expect(sent).toEqual([]);
    expect(await kit.drain()).toMatchObject({ completed: 1, failed: 0 });
    expect(sent).toEqual(['Welcome, Ada']);
  });

  it('runs one handler by its class', async () => {
    await kit.performJob(MailProcessor, 'welcome', { to: 'Grace' });
    expect(sent).toEqual(['Welcome, Grace']);
    await kit.refuteEnqueued({ queue: 'mail' });
  });

  it('leaves no key behind', async () => {
    await module.get(MailService, { strict: false }).welcome('Ada');
    const keys = () => server.client.keys(`*${kit.prefix}*`);
    expect(await keys()).not.toEqual([]);
    await module.close();
    expect(await keys()).toEqual([]);
  });
});
