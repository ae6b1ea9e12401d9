import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { Consumers } from 'nestjs-echomq';
import { AppModule } from '../src/app.module.js';
import { MailService } from '../src/mail.service.js';

/** Boots the app, has one job run, closes. Nothing is left open, so the process ends by itself. */
async function main(to: string): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
  const mail = app.get(MailService);
  const completed = new Promise<void>((resolve) =>
    app
      .get(Consumers)
      .of('mail')
      .on('completed', () => resolve()),
  );
  const id = await mail.welcome(to);
  await completed;
  await app.close();
  console.log(id);
}

main(process.argv[2] ?? 'nobody').catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
