import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { type ConsumerOptions, defineQueue, EchoArgumentError, type Handler, type Queue } from '../../../lib/core.js';
import { isQueue } from '../../../lib/kernel/queue.js';
import { until } from '../../support/until.js';
import { failure, useStage } from './stage.js';

const Mail = defineQueue<{ welcome: { to: string }; digest: { day: string }; ping: undefined }>('mail');

describe('a definition of a queue', () => {
  it('is a frozen object: its name, and its schemas where it was given any', () => {
    const schemas = { welcome: z.object({ to: z.string() }) };
    const Checked = defineQueue('mail', schemas);
    expect(Object.keys(Mail)).toEqual(['name']);
    expect(Mail.name).toBe('mail');
    expect(Checked).toMatchObject({ name: 'mail', schemas: { welcome: schemas.welcome } });
    for (const value of [Mail, Checked, Checked.schemas]) expect(Object.isFrozen(value)).toBe(true);
    Object.assign(schemas, { digest: z.string() });
    expect(Object.keys(Checked.schemas!)).toEqual(['welcome']);
  });

  it.each(['', ' mail', '{mail}', 'a\nb', 'x'.repeat(201), 1, undefined, null])(
    'is refused at once for a name that no queue can have: %p',
    (name) => {
      expect(() => defineQueue(name as string)).toThrow(EchoArgumentError);
      expect(() => defineQueue(name as string)).toThrow(/queue name/);
    },
  );

  it.each<[unknown, RegExp]>([
    [undefined, /takes an object, a schema for each job's name, got undefined/],
    [null, /takes an object/],
    [[z.string()], /takes an object/],
    [{}, /declares no job/],
    [{ '': z.string() }, /must not be empty/],
    [{ welcome: { to: 'Ada' } }, /'welcome' has no schema but object/],
    [{ welcome: undefined }, /'welcome' has no schema but undefined/],
    [{ welcome: class Welcome {} }, /write dtoSchema\(TheClass\)/],
    [{ welcome: { '~standard': { version: 2, validate: () => undefined } } }, /has no schema/],
  ])('is refused at once for what are no schemas: %p', (schemas, message) => {
    expect(() => defineQueue('mail', schemas as never)).toThrow(EchoArgumentError);
    expect(() => defineQueue('mail', schemas as never)).toThrow(message);
  });

  it('takes schemas that are functions', () => {
    const schema = Object.assign(() => undefined, { '~standard': z.string()['~standard'] });
    expect(defineQueue('mail', { welcome: schema }).schemas?.welcome).toBe(schema);
  });

  it('is known across two copies of this package', async () => {
    const other = (await import(`${'../../../lib/kernel/queue.js'}?copy`)) as { defineQueue: typeof defineQueue };
    expect(other.defineQueue).not.toBe(defineQueue);
    expect(isQueue(other.defineQueue('mail'))).toBe(true);
  });

  it.each([{ name: 'mail' }, 'mail', null, undefined, () => 'mail'])('is nothing else: %p', (value) => {
    expect(isQueue(value)).toBe(false);
  });
});

describe('a defined queue', () => {
  const stage = useStage();

  it('is the queue of its name, for every method of Jobs', async () => {
    const { jobs } = await stage.connect();
    const { id } = await jobs.enqueue(Mail, 'welcome', { to: 'Ada' });
    expect((await jobs.get('mail', id))?.data).toEqual({ to: 'Ada' });
    expect(await jobs.get(Mail, id)).toEqual(await jobs.get('mail', id));
    expect(await jobs.list(Mail, 'pending')).toMatchObject({ total: 1, jobs: [{ id }] });

    const [claimed] = await jobs.claim(Mail, { leaseMs: 60_000 });
    expect(claimed).toMatchObject({ id, name: 'welcome', data: { to: 'Ada' } });
    expect(await jobs.extend(Mail, id, claimed!.token, { leaseMs: 60_000 })).toBe('ok');
    expect(await jobs.release(Mail, id, claimed!.token, { delayMs: 60_000 })).toBe('ok');
    expect(await jobs.reschedule(Mail, id, { delayMs: 30_000 })).toBe('ok');
    expect(await jobs.promote(Mail)).toMatchObject({ moved: 0 });
    expect(await jobs.reap(Mail)).toMatchObject({ requeued: 0, died: 0 });
    expect(await jobs.reschedule(Mail, id, { delayMs: 0 })).toBe('ok');

    const [again] = await jobs.claim(Mail, { leaseMs: 60_000 });
    expect(await jobs.retry(Mail, id, again!.token, { maxAttempts: 0 })).toBe('dead');
    expect(await jobs.reprocess(Mail, id)).toBe('ok');
    const [last] = await jobs.claim(Mail, { leaseMs: 60_000 });
    expect(await jobs.complete(Mail, id, last!.token)).toBe('ok');

    const [first, second] = await jobs.enqueueMany(Mail, [
      { name: 'digest', data: { day: 'Monday' } },
      { name: 'ping', opts: { priority: 1 } },
    ]);
    expect(await jobs.pause(Mail)).toBe(true);
    expect(await jobs.isPaused(Mail)).toBe(true);
    expect(await jobs.resume(Mail)).toBe(true);
    expect(await jobs.cancel(Mail, first!.id)).toBe('removed');
    expect(await jobs.remove(Mail, second!.id)).toBe('ok');
    expect(await jobs.trim(Mail, { keepCount: 0 })).toBe(0);
    expect(await jobs.counts(Mail)).toMatchObject({ pending: 0, active: 0, metrics: { enqueued: 3, completed: 1 } });
    expect(await jobs.obliterate(Mail)).toBe(0);
  });

  it('is consumed like any other, and its jobs are told apart by name', async () => {
    const echo = await stage.connect();
    const ran: string[] = [];
    const consumer = echo.consume(Mail, { concurrency: 2 }, (job) => {
      switch (job.name) {
        case 'welcome':
          return ran.push(`welcome ${job.data.to}`);
        case 'digest':
          return ran.push(`digest ${job.data.day}`);
        default:
          return ran.push(`${job.name} ${job.data}`);
      }
    });
    expect(consumer.queue).toBe('mail');
    expect(() => echo.consume('mail', {}, () => undefined)).toThrow(/'mail' has a consumer/);
    await echo.jobs.enqueue(Mail, 'welcome', { to: 'Ada' });
    await echo.jobs.enqueue(Mail, 'digest', { day: 'Monday' });
    await echo.jobs.enqueue(Mail, 'ping');
    await until(() => ran.length === 3, { what: 'all three' });
    expect(ran.sort()).toEqual(['digest Monday', 'ping undefined', 'welcome Ada']);
  });

  it('by types alone is checked by the compiler alone', async () => {
    const { jobs } = await stage.connect();
    const { id } = await jobs.enqueue(Mail as Queue, 'welcom', { too: 'Ada' });
    expect(await jobs.get(Mail, id)).toMatchObject({ name: 'welcom', data: { too: 'Ada' } });
  });

  it('wraps no handler when it has no schemas', async () => {
    const { validating } = await import('../../../lib/engine/validation.js');
    const handler: Handler = () => undefined;
    expect(validating(Mail, handler)).toBe(handler);
    expect(validating('mail', handler)).toBe(handler);
    expect(validating(undefined, handler)).toBe(handler);
  });

  it.each([{ name: 'mail' }, 1, null, undefined, ['mail'], () => 'mail'])(
    'is a name or a definition; anything else is refused: %p',
    async (queue) => {
      const echo = await stage.connect();
      const message = /queue name must be a string, or a queue made by defineQueue\(\), got/;
      for (const call of [
        () => echo.jobs.enqueue(queue as unknown as string, 'a'),
        () => echo.jobs.enqueueMany(queue as unknown as string, [{ name: 'a' }]),
        () => echo.jobs.counts(queue as never),
        () => echo.jobs.remove(queue as never, echo.jobs.mintId()),
      ]) {
        const error = await failure(call());
        expect(error).toBeInstanceOf(EchoArgumentError);
        expect(error.message).toMatch(message);
      }
      expect(() => echo.consume(queue as never, {} as ConsumerOptions, () => undefined)).toThrow(message);
      expect(await stage.control.keys('emq:*')).toEqual([]);
    },
  );
});
