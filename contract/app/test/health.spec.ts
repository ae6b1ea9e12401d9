import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { EchoMqHealthIndicator, EchoMqModule, type EchoMqModuleOptions } from 'nestjs-echomq';
import { moduleOf } from '../drain/places.js';
import { BOOTS, useApps } from './support/apps.js';
import { guardLeaks } from './support/leaks.js';
import { useServer } from './support/server.js';

/** Terminus 10 answers 503 only for what throws. */
const throwOnDown = readFileSync('node_modules/@nestjs/terminus/package.json', 'utf8').includes('"version": "10.');

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly echomq: EchoMqHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.echomq.isHealthy('echomq', { timeoutMs: 500, throwOnDown })]);
  }
}

describe('a health endpoint of @nestjs/terminus', () => {
  const server = useServer();
  const apps = useApps();
  guardLeaks();

  const boot = async (options: EchoMqModuleOptions) => {
    const imports = [EchoMqModule.forRoot(options), TerminusModule.forRoot({ logger: false })];
    const root = moduleOf({ imports, controllers: [HealthController] });
    return apps.keep(await BOOTS['an HTTP app']!(root)) as INestApplication;
  };

  it('answers 200 while the server answers', async () => {
    const { code, body } = await ask(await boot(server.options()));
    expect([code, body.details.echomq?.status]).toEqual([200, 'up']);
  });

  it('answers 503 while it does not', async () => {
    const nowhere = { host: '127.0.0.1', port: 1 };
    const { code, body } = await ask(await boot({ connection: nowhere, onBoot: 'wait', onError: () => {} }));
    expect([code, body.details.echomq?.status]).toEqual([503, 'down']);
  });
});

interface Answer {
  code: number | undefined;
  body: { details: Record<string, { status: string }> };
}

/** Over a connection of its own, which ends with the answer. */
async function ask(app: INestApplication): Promise<Answer> {
  const url = new URL('/health', await app.getUrl());
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('end', () => resolve({ code: response.statusCode, body: JSON.parse(text) }));
    }).once('error', reject);
  });
}
