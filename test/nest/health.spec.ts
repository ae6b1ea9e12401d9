import { get } from 'node:http';
import { expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Inject, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import {
  EchoArgumentError,
  type EchoMq,
  EchoMqHealthIndicator,
  EchoMqModule,
  type EchoMqModuleOptions,
  getEchoMqToken,
  Jobs,
  OnJob,
  Processor,
} from '../../lib/index.js';
import { describeWithProcess } from '../support/availability.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { failure, moduleOf, useApps } from './apps.js';

@Processor('mail')
class Mail {
  @OnJob('welcome')
  welcome(): void {}
}

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly echomq: EchoMqHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.echomq.isHealthy('echomq', { timeoutMs: 1000, stuckAfterMs: 50 })]);
  }
}

const AUDIT = Symbol('the indicator of the instance audit');

@Controller('both')
class BothController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly echomq: EchoMqHealthIndicator,
    @Inject(AUDIT) private readonly audit: EchoMqHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.echomq.isHealthy(), () => this.audit.isHealthy('audit', { timeoutMs: 1000 })]);
  }
}

interface Answer {
  code: number | undefined;
  body: { status: string; info: object; error: object; details: Record<string, { status: string }> };
}

/** Over a connection of its own, which ends with the answer. */
function ask(app: INestApplication, path = 'health'): Promise<Answer> {
  const { port } = app.getHttpServer().address() as { port: number };
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: `/${path}`, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ code: response.statusCode, body: JSON.parse(text) }));
    }).on('error', reject);
  });
}

async function once(code: number, app: INestApplication): Promise<Answer> {
  let answer = await ask(app);
  const asked = async () => {
    answer = await ask(app);
    return answer.code === code;
  };
  await until(asked, { what: `the answer ${code}` });
  return answer;
}

const WELL = { ok: true, reasons: [], leader: true, pending: 0, paused: false, lateMs: 0, stuck: false };

describeWithProcess('the health indicator', () => {
  const server = useServer();
  const apps = useApps(server);
  guardLeaks();

  const serve = async (metadata: ModuleMetadata, options: Partial<EchoMqModuleOptions> = {}) => {
    const imports = [EchoMqModule.forRoot(apps.options(options)), TerminusModule.forRoot({ logger: false })];
    const root = moduleOf({ ...metadata, imports: [...imports, ...(metadata.imports ?? [])] });
    const app = apps.keep(await NestFactory.create(root, { logger: apps.logger, abortOnError: false }));
    await app.listen(0, '127.0.0.1');
    return app;
  };

  it('behind an endpoint answers 200 and how each queue stands when all is well', async () => {
    const app = await serve({ controllers: [HealthController], providers: [Mail] });
    await until(async () => (await app.get(EchoMqHealthIndicator).isHealthy()).echomq.queues.mail?.leader, {
      what: 'the queue to be led',
    });
    const { code, body } = await ask(app);
    const echomq = { status: 'up', pingMs: expect.any(Number), queues: { mail: WELL } };
    expect({ code, body }).toEqual({
      code: 200,
      body: { status: 'ok', info: { echomq }, error: {}, details: { echomq } },
    });
  });

  it('answers 200 in a process that only enqueues', async () => {
    const app = await serve({ controllers: [HealthController], providers: [Mail] }, { consume: false });
    const { code, body } = await ask(app);
    expect({ code, details: body.details }).toEqual({
      code: 200,
      details: { echomq: { status: 'up', pingMs: expect.any(Number), queues: {} } },
    });
  });

  it('answers 503 while the server does not answer, and 200 when it does', async () => {
    const app = await serve({ controllers: [HealthController], providers: [Mail] });
    await once(200, app);
    server.process.pause();
    const { code, body } = await ask(app);
    server.process.resume();
    const error = 'ECHO_TIMEOUT: gave up after 1000 ms: the server has not answered';
    const echomq = { status: 'down', error, queues: { mail: { ok: false, reasons: [error] } } };
    expect({ code, body }).toEqual({
      code: 503,
      body: { status: 'error', info: {}, error: { echomq }, details: { echomq } },
    });
    await once(200, app);
  });

  it('answers 503 while the server is gone, and 200 when it is back', async () => {
    const app = await serve({ controllers: [HealthController], providers: [Mail] });
    await once(200, app);
    await server.process.kill();
    const { code, body } = await ask(app);
    expect({ code, status: body.details.echomq!.status }).toEqual({ code: 503, status: 'down' });
    await server.process.restart();
    await once(200, app);
  });

  it('answers 503 while a queue is stuck, and 200 when it goes on', async () => {
    const producer = await apps.boot({}, { consume: false });
    await producer.get(Jobs).enqueue('mail', 'welcome');
    await server.client().set('emq:{mail}:hungry', 'so that every claim is refused');
    const app = await serve({ controllers: [HealthController], providers: [Mail] });
    const { body } = await once(503, app);
    expect(body.error).toMatchObject({
      echomq: {
        status: 'down',
        pingMs: expect.any(Number),
        queues: {
          mail: {
            ok: false,
            stuck: true,
            pending: 1,
            reasons: expect.arrayContaining([expect.stringContaining('no claim')]),
          },
        },
      },
    });
    await server.client().del('emq:{mail}:hungry');
    await once(200, app);
  });

  it('can be made for an instance that has a name, and each is told by itself', async () => {
    const audit = {
      provide: AUDIT,
      inject: [getEchoMqToken('audit')],
      useFactory: (echo: EchoMq) => new EchoMqHealthIndicator(echo),
    };
    const nowhere = apps.options({
      name: 'audit',
      connection: { host: '127.0.0.1', port: 1 },
      onBoot: 'wait',
      connectTimeoutMs: 50,
    });
    const app = await serve({
      imports: [EchoMqModule.forRoot(nowhere)],
      controllers: [BothController],
      providers: [audit],
    });
    const { code, body } = await ask(app, 'both');
    expect({ code, info: body.info, error: body.error }).toMatchObject({
      code: 503,
      info: { echomq: { status: 'up' } },
      error: { audit: { status: 'down', error: expect.stringContaining('ECONNREFUSED') } },
    });
  });

  it('throws for terminus 10, when told to, what that takes for an answer', async () => {
    const app = await serve({ providers: [Mail] });
    const indicator = app.get(EchoMqHealthIndicator);
    const options = { throwOnDown: true, timeoutMs: 1000 };
    expect(await indicator.isHealthy('mq', options)).toMatchObject({ mq: { status: 'up' } });
    server.process.pause();
    const thrown = await failure(indicator.isHealthy('mq', options));
    server.process.resume();
    expect(thrown).toMatchObject({
      isHealthCheckError: true,
      causes: { mq: { status: 'down', error: expect.stringMatching(/^ECHO_TIMEOUT/) } },
    });
  });

  it('refuses options that make no sense', async () => {
    const indicator = (await serve({})).get(EchoMqHealthIndicator);
    for (const options of [{ throwOnDown: 'yes' }, { maxLate: 5 }]) {
      expect(await failure(indicator.isHealthy('mq', options as object))).toBeInstanceOf(EchoArgumentError);
    }
  });
});
