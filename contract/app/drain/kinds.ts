import type { INestApplicationContext, NestApplicationOptions, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';

const QUIET = { logger: ['error', 'fatal'], abortOnError: false } satisfies NestApplicationOptions;

/** The kinds of app that a process may boot. */
export const KINDS = {
  'an application context': (root) => NestFactory.createApplicationContext(root, QUIET),
  'an HTTP app': async (root) => {
    const app = await NestFactory.create(root, QUIET);
    await app.listen(0, '127.0.0.1');
    return app;
  },
} satisfies Record<string, (root: Type) => Promise<INestApplicationContext>>;

export type KindName = keyof typeof KINDS;
export const KIND_NAMES = Object.keys(KINDS) as KindName[];
