import { expectTypeOf } from 'expect-type';
import { defineQueue, type EnqueueResult, type Jobs, type Queue } from 'nestjs-echomq';
import { z } from 'zod';

declare const jobs: Jobs;
const Mail = defineQueue<{
  welcome: { to: string };
  digest: { day: string };
  ping: undefined;
  note: string | undefined;
}>('mail');
const Orders = defineQueue('orders', {
  paid: z.object({ amount: z.string().transform(Number) }),
  audit: z.object({ since: z.string() }).optional(),
});

// What fits.
expectTypeOf(jobs.enqueue(Mail, 'welcome', { to: 'Ada' })).toEqualTypeOf<Promise<EnqueueResult>>();
jobs.enqueue(Mail, 'welcome', { to: 'Ada' }, { delayMs: 1000 });
jobs.enqueue(Mail, 'ping');
jobs.enqueue(Mail, 'ping', undefined, { priority: 1 });
jobs.enqueue(Mail, 'note');
jobs.enqueue(Mail, 'note', 'a text');
jobs.enqueue(Orders, 'paid', { amount: '12' });
jobs.enqueue(Orders, 'audit');

// @ts-expect-error the queue has no such job
jobs.enqueue(Mail, 'welcom', { to: 'Ada' });
// @ts-expect-error welcome's data has a `to`
jobs.enqueue(Mail, 'welcome', { day: 'Monday' });
// @ts-expect-error and nothing else
jobs.enqueue(Mail, 'welcome', { to: 'Ada', cc: 'Bob' });
// @ts-expect-error of the right type
jobs.enqueue(Mail, 'welcome', { to: 1 });
// @ts-expect-error its data is missing
jobs.enqueue(Mail, 'welcome');
// @ts-expect-error undefined is no data
jobs.enqueue(Mail, 'welcome', undefined);
// @ts-expect-error that is no option
jobs.enqueue(Mail, 'welcome', { to: 'Ada' }, { delay: 1000 });
// @ts-expect-error what is enqueued is the schema's input, not its output
jobs.enqueue(Orders, 'paid', { amount: 12 });
// @ts-expect-error a ping has no data
jobs.enqueue(Mail, 'ping', { to: 'Ada' });

// A name that may be one or the other takes what does for both.
declare const either: 'welcome' | 'digest';
jobs.enqueue(Mail, either, { to: 'Ada', day: 'Monday' });
// @ts-expect-error it may be a digest
jobs.enqueue(Mail, either, { to: 'Ada' });

// Many at once: each item by its own name.
expectTypeOf(
  jobs.enqueueMany(Mail, [
    { name: 'welcome', data: { to: 'Ada' } },
    { name: 'digest', data: { day: 'Monday' }, opts: { priority: 2 } },
    { name: 'ping' },
  ]),
).toEqualTypeOf<Promise<EnqueueResult[]>>();
jobs.enqueueMany(
  Mail,
  ['Ada', 'Bob'].map((to) => ({ name: 'welcome', data: { to } })),
);
// @ts-expect-error the queue has no such job
jobs.enqueueMany(Mail, [{ name: 'welcom', data: { to: 'Ada' } }]);
// @ts-expect-error that is a digest's data
jobs.enqueueMany(Mail, [{ name: 'welcome', data: { day: 'Monday' } }]);
// @ts-expect-error its data is missing
jobs.enqueueMany(Mail, [{ name: 'welcome' }]);

// By its bare name a queue takes anything, as ever.
jobs.enqueue('mail', 'welcom', { too: 'Ada' });
jobs.enqueue('mail', 'ping');
jobs.enqueueMany('mail', [{ name: 'welcom' }]);
// @ts-expect-error a queue is a name or a definition
jobs.enqueue(1, 'welcome');
// @ts-expect-error and not merely something with a name
jobs.enqueue({ name: 'mail' }, 'welcome');

// The data of a job that is there may be that of any of the queue's.
jobs.changeData(Mail, 'id', { to: 'Ada' });
jobs.changeData(Mail, 'id', { day: 'Monday' });
// @ts-expect-error no job of the queue has such data
jobs.changeData(Mail, 'id', { too: 'Ada' });
jobs.changeData('mail', 'id', { too: 'Ada' });
// @ts-expect-error a filter answers at once
jobs.reprocessMany(Mail, { filter: async () => true });

// Every other method takes either, too.
export async function others(queue: string | Queue, id: string, token: string): Promise<void> {
  await jobs.get(queue, id);
  await jobs.list(queue, 'dead');
  await jobs.counts(queue);
  await jobs.pause(queue);
  await jobs.resume(queue);
  await jobs.isPaused(queue);
  await jobs.cancel(queue, id);
  await jobs.remove(queue, id);
  await jobs.reprocess(queue, id);
  await jobs.reschedule(queue, id, { delayMs: 1 });
  await jobs.trim(queue, { keepCount: 1 });
  await jobs.obliterate(queue);
  await jobs.changePriority(queue, id, 1);
  await jobs.changeData(queue, id, 1);
  await jobs.promoteNow(queue, id);
  await jobs.drain(queue, { scheduled: true });
  await jobs.removeMany(queue, 'dead', { limit: 1 });
  await jobs.reprocessMany(queue, { name: 'welcome', fresh: true });
  await jobs.completions(queue, { after: '0-0' });
  await jobs.claim(queue, { leaseMs: 1000 });
  await jobs.complete(queue, id, token);
  await jobs.retry(queue, id, token, { maxAttempts: 1 });
  await jobs.release(queue, id, token);
  await jobs.extend(queue, id, token, { leaseMs: 1000 });
  await jobs.promote(queue);
  await jobs.reap(queue);
}

// A queue of whatever jobs, for code that serves all of them.
export const whatever = (queue: Queue, name: string, data: unknown) => jobs.enqueue(queue, name, data);

// Lanes, deduplication and ageing.
jobs.enqueue(Mail, 'ping', undefined, { lane: 'a', dedup: { key: 'k' }, priority: 1, ageingMs: 1000 });
jobs.enqueue(Mail, 'ping', undefined, { lane: ['g', 'a'], dedup: { key: 'k', mode: 'throttle', ttlMs: 1000 } });
jobs.enqueue(Mail, 'ping', undefined, { lane: null });
jobs.limit(Mail, { concurrency: 5, rate: { limit: 10, perMs: 1000 } });
// @ts-expect-error a lane is a name, or a group and a name
jobs.enqueue(Mail, 'ping', undefined, { lane: ['g'] });
// @ts-expect-error there is no such mode
jobs.enqueue(Mail, 'ping', undefined, { dedup: { key: 'k', mode: 'once' } });
// @ts-expect-error a limit without a time limits nothing
jobs.limit(Mail, { rate: { limit: 10 } });
