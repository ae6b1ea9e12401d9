import { setTimeout as work } from 'node:timers/promises';
import {
  type ConnectionSource,
  type ConsumerOptions,
  Discard,
  EchoMq,
  type Job,
  RateLimited,
  Snooze,
} from '../../../lib/core.js';

/** A process that consumes the queues it is told. What becomes of a job at each of its attempts stands in its data. */
const [connection, queues, options] = process.argv.slice(2).map((arg) => JSON.parse(arg)) as [
  ConnectionSource,
  string[],
  ConsumerOptions,
];

/**
 * `ms`: how long each attempt works. `deeds`: how the first, the second ... end; those that are not named, well. One that
 * hangs never does, and its progress says in which process.
 */
interface Orders {
  ms?: number;
  deeds?: ('fail' | 'discard' | 'snooze' | 'limited' | 'hang')[];
}

const say = (type: string, fields: object = {}) =>
  new Promise<void>((resolve) => {
    process.send?.({ type, ...fields }, () => resolve());
  });

async function handle(job: Job): Promise<number> {
  const { ms = 0, deeds = [] } = (job.data ?? {}) as Orders;
  if (ms > 0) await work(ms);
  switch (deeds[job.attempts - 1]) {
    case 'fail':
      throw new Error('told to');
    case 'discard':
      throw new Discard('told to');
    case 'snooze':
      throw new Snooze(10);
    case 'limited':
      throw new RateLimited(20);
    case 'hang':
      await job.progress(process.pid);
      await new Promise(() => undefined);
  }
  return job.attempts;
}

const echo = await EchoMq.connect({ connection, onError: (error) => say('fault', { text: error.message }) });
const backoff = { type: 'fixed', delayMs: 5 } as const;
for (const queue of queues) echo.consume(queue, { backoff, ...options }, handle);
process.on('message', () => {
  echo.close().then(() => {
    say('closed');
    process.disconnect(); // the channel to the test is all that keeps this process awake now
  });
});
say('ready');
