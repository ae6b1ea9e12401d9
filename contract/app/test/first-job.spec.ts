import { describe, expect, it } from '@jest/globals';
import { EchoMq, Jobs } from 'nestjs-echomq';
import { AppModule } from '../src/app.module.js';
import { MailService } from '../src/mail.service.js';
import { BOOTS, useApps } from './support/apps.js';
import { guardLeaks } from './support/leaks.js';
import { usePrograms } from './support/program.js';
import { useServer } from './support/server.js';
import { until } from './support/until.js';

describe('an app whose options come by injection', () => {
  const server = useServer();
  const apps = useApps();
  const start = usePrograms();
  guardLeaks();

  it.each(Object.keys(BOOTS))('boots as %s, runs a job, closes and leaves nothing open', async (kind) => {
    const app = apps.keep(await BOOTS[kind]!(AppModule));
    const mail = app.get(MailService, { strict: false });
    const id = await mail.welcome('Ada');
    expect(await until(() => mail.receipt(id), { what: 'the receipt' })).toBe('Welcome, Ada');
    expect(app.get(Jobs)).toBe(app.get(EchoMq).jobs);
    await apps.close(app);
    expect(await server.client.zcard(`${server.prefix}:{mail}:active`)).toBe(0);
  });

  it('ends by itself once it is closed, as a process', async () => {
    const program = start('first-job', 'Ada');
    expect(await program.end()).toBe(0);
    const [id, ...more] = program.lines;
    expect(more).toEqual([]);
    expect(await server.client.hget(`${server.prefix}:{mail}:job:${id}`, 'result')).toBe('"Welcome, Ada"');
  });
});
