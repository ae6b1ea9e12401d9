import { afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import type { Redis } from 'ioredis';
import { EchoMq, type EchoMqOptions } from '../../../lib/core.js';
import type { RedisProcessOptions } from '../../../scripts/server/redis-process.js';
import { expectInvariants } from '../../support/invariants.js';
import { guardLeaks } from '../../support/leaks.js';
import { FaultProxy } from '../../support/proxy.js';
import { type TestServer, useServer } from '../../support/server.js';
import { until } from '../../support/until.js';
import { Overheard } from './overheard.js';

/** What a spec of this folder stands on: an empty server before each test, and what is opened on it. */
export interface Stage {
  readonly server: TestServer;
  /** A plain client for looking, open for the whole file. */
  readonly control: Redis;
  /** Trouble nobody asked about, from every EchoMq without an `onError` of its own; a test that leaves any here fails. */
  readonly faults: Error[];
  /** An EchoMq on the server, closed after the test. */
  connect(options?: Partial<EchoMqOptions>): Promise<EchoMq>;
  /** Listens, from now to the end of the test, to what clients say to the server. */
  overhear(): Promise<Overheard>;
  /** A proxy before the server, closed after the test. */
  proxy(): Promise<FaultProxy>;
}

/**
 * Call it first in a `describe`. After each test it closes every EchoMq, runs the invariant checker on every queue that has
 * a key, and then looks for leaks.
 */
export function useStage(options?: RedisProcessOptions): Stage {
  const server = useServer(options);
  const opened: EchoMq[] = [];
  const proxies: FaultProxy[] = [];
  const ears: Overheard[] = [];
  const faults: Error[] = [];
  let control: Redis | undefined;
  beforeAll(() => {
    control = server.client();
  });
  beforeEach(() => {
    faults.length = 0;
  });
  afterEach(async () => {
    await Promise.all(ears.splice(0).map((ear) => ear.stop()));
    await Promise.all(opened.splice(0).map((echo) => echo.close()));
    await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
    for (const { prefix, queue } of await queuesOn(control!)) await expectInvariants(control!, queue, { prefix });
    expect(faults).toEqual([]);
  });
  guardLeaks();
  return {
    server,
    faults,
    get control() {
      return control!;
    },
    async connect(more) {
      const echo = await EchoMq.connect({
        connection: server.url,
        onError: (error) => faults.push(error),
        ...more,
      });
      opened.push(echo);
      return echo;
    },
    async overhear() {
      const ear = await Overheard.listen(server.client());
      ears.push(ear);
      return ear;
    },
    async proxy() {
      const proxy = await FaultProxy.listen(server.url);
      proxies.push(proxy);
      return proxy;
    },
  };
}

/** Every queue that has at least one key. */
export async function queuesOn(control: Redis): Promise<{ prefix: string; queue: string }[]> {
  const found = new Map<string, { prefix: string; queue: string }>();
  for (const key of await control.keys('*')) {
    const named = /^([^{}]+):\{([^{}]+)\}:/.exec(key);
    if (named) found.set(named[0], { prefix: named[1]!, queue: named[2]! });
  }
  return [...found.values()];
}

/** A promise and the way to settle it. */
export interface Latch<T = void> {
  readonly opened: Promise<T>;
  open(value: T): void;
}

export function latch<T = void>(): Latch<T> {
  let open: (value: T) => void = () => {};
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { opened, open: (value) => open(value) };
}

/** The error a promise rejects with; a promise that resolves is a failure. */
export async function failure<E extends Error = Error>(promise: Promise<unknown>): Promise<E> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: E) => ({ error }),
  );
  if (!('error' in outcome)) throw new Error(`expected a rejection, got ${JSON.stringify(outcome.value)}`);
  return outcome.error;
}

/** Lets happen whatever the queue would do by itself now: many round trips, each with a turn of the event loop behind it. */
export async function quiet(echo: EchoMq, queue: string, roundTrips = 30): Promise<void> {
  for (let i = 0; i < roundTrips; i++) {
    await echo.jobs.counts(queue);
    await new Promise((next) => setImmediate(next));
  }
}

/** Waits until a consumer has told the server that it is hungry: it is parked from then on. */
export async function hungry(control: Redis, queue: string, processes = 1): Promise<void> {
  await until(async () => (await control.zcard(`emq:{${queue}}:hungry`)) >= processes, { what: 'a parked consumer' });
}

/** The server's clock, in ms since 1970. */
export async function serverMs(control: Redis): Promise<number> {
  const [seconds, micros] = await control.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

/** 0 to n - 1. */
export function numbers(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i);
}
