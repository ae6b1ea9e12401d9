import { describe, expect, it } from '@jest/globals';
import { defineQueue, EchoArgumentError } from '../../../lib/index.js';
import { EchoAssertionError, type EnqueuedMatch } from '../../../lib/testing.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { failure } from '../apps.js';
import { useKits } from './kits.js';

describe('kit.assertEnqueued()', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();
  const boot = () => kits.boot({});

  it('answers the jobs that match in name and in what is given of their data', async () => {
    const { kit, jobs } = await boot();
    const ada = await jobs.enqueue('mail', 'welcome', { to: 'ada', tags: ['a', 'b'], from: { host: 'h', port: 1 } });
    await jobs.enqueue('mail', 'welcome', { to: 'bob' });
    await jobs.enqueue('mail', 'digest', { to: 'ada' });
    const found = await kit.assertEnqueued({ queue: 'mail', name: 'welcome', data: { to: 'ada', from: { port: 1 } } });
    expect(found).toMatchObject([{ id: ada.id, queue: 'mail', state: 'pending', runAt: undefined, attempts: 0 }]);
    expect(await kit.assertEnqueued({ queue: 'mail', name: 'welcome' })).toHaveLength(2);
    expect(await kit.assertEnqueued({ queue: 'mail' })).toHaveLength(3);
    await kit.assertEnqueued({ queue: 'mail', data: { tags: ['a', expect.any(String)] } });
    await kit.assertEnqueued({ queue: 'mail', data: expect.objectContaining({ to: 'bob' }) });
  });

  it('finds jobs beyond the first page, pending and scheduled', async () => {
    const { kit, jobs } = await boot();
    const many = Array.from({ length: 1500 }, (_, i) => ({ name: 'n', data: i }));
    await jobs.enqueueMany('mail', many);
    await jobs.enqueueMany(
      'mail',
      many.map((job) => ({ ...job, name: 'later', opts: { delayMs: 60_000 } })),
    );
    await kit.assertEnqueued({ queue: 'mail', name: 'n', data: 1499, count: 1 });
    await kit.assertEnqueued({ queue: 'mail', name: 'later', data: 1499, count: 1 });
    expect(await kit.enqueued('mail')).toHaveLength(3000);
  });

  it('counts where a count is given', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueueMany('mail', [{ name: 'welcome' }, { name: 'welcome' }]);
    await kit.assertEnqueued({ queue: 'mail', name: 'welcome', count: 2 });
    await kit.assertEnqueued({ queue: 'mail', name: 'digest', count: 0 });
    const error = await failure(kit.assertEnqueued({ queue: 'mail', name: 'welcome', count: 1 }));
    expect(error.message).toContain("assertEnqueued: 2 jobs of queue 'mail' matches { name: 'welcome' }, expected 1");
  });

  it('compares priority, options, delay and time', async () => {
    const { kit, jobs } = await boot();
    const tomorrow = new Date(Date.now() + 86_400_000);
    await jobs.enqueue('mail', 'now', null, { priority: 5, attempts: 7 });
    await jobs.enqueue('mail', 'soon', null, { delayMs: 60_000 });
    await jobs.enqueue('mail', 'tomorrow', null, { runAt: tomorrow });
    await kit.assertEnqueued({ queue: 'mail', name: 'now', priority: 5, delayMs: 0, opts: { attempts: 7 } });
    await kit.assertEnqueued({ queue: 'mail', name: 'soon', delayMs: 60_000, priority: 0 });
    await kit.assertEnqueued({ queue: 'mail', name: 'tomorrow', runAt: tomorrow, toleranceMs: 0 });
    await kit.assertEnqueued({ queue: 'mail', name: 'soon', delayMs: 50_000, toleranceMs: 11_000 });
    const no = { queue: 'mail', name: 'soon' };
    await kit.refuteEnqueued({ ...no, delayMs: 0 });
    await kit.refuteEnqueued({ ...no, delayMs: 58_000 });
    await kit.refuteEnqueued({ ...no, runAt: tomorrow });
    await kit.refuteEnqueued({ ...no, opts: { attempts: 7 } });
    await kit.refuteEnqueued({ queue: 'mail', name: 'now', delayMs: 500 });
  });

  it('compares the lane', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('mail', 'laned', null, { lane: 't' });
    await jobs.enqueue('mail', 'grouped', null, { lane: ['g', 't'] });
    await jobs.enqueue('mail', 'bare');
    await kit.assertEnqueued({ queue: 'mail', name: 'laned', lane: 't' });
    await kit.assertEnqueued({ queue: 'mail', name: 'grouped', lane: ['g', 't'] });
    await kit.assertEnqueued({ queue: 'mail', name: 'bare', lane: null });
    await kit.refuteEnqueued({ queue: 'mail', name: 'grouped', lane: 't' });
    await kit.refuteEnqueued({ queue: 'mail', name: 'laned', lane: null });
    await kit.refuteEnqueued({ queue: 'mail', name: 'bare', lane: 't' });
    const error = await failure(kit.assertEnqueued({ queue: 'mail', lane: 'u' }));
    expect(error.message).toContain("  pending   'laned' null, lane 't'");
  });

  it('takes matchers for options, and parts of a backoff', async () => {
    const { kit, jobs } = await boot();
    const backoff = { type: 'exponential', delayMs: 100, maxMs: 900 } as const;
    await jobs.enqueue('mail', 'welcome', null, { attempts: 7, backoff });
    const match = (opts: unknown) => ({ queue: 'mail', opts: opts as EnqueuedMatch['opts'] & object });
    await kit.assertEnqueued(match({ attempts: expect.any(Number), timeoutMs: undefined }));
    await kit.assertEnqueued(match(expect.objectContaining({ attempts: 7 })));
    await kit.assertEnqueued(match({ backoff: { delayMs: expect.any(Number), maxMs: 900 } }));
    await kit.refuteEnqueued(match({ backoff: { type: 'fixed' } }));
  });

  it('says what is there instead, where else something is, and what has gone', async () => {
    const { kit, jobs } = await boot();
    const runAt = new Date('2090-01-01T00:00:00Z');
    await jobs.enqueueMany('mail', [
      { name: 'digest', data: { day: 'mon' } },
      { name: 'welcome', data: { to: 'ada' } },
    ]);
    await jobs.enqueue('mail', 'digest', { day: 'tue' }, { runAt, priority: 3, attempts: 9 });
    await jobs.enqueue('male', 'welcome', { to: 'bob' });
    await jobs.enqueue('mail', 'welcome', null, { priority: -1 });
    const [done] = await jobs.claim('mail', { leaseMs: 60_000 });
    await jobs.complete('mail', done!.id, done!.token);
    const error = await failure(
      kit.assertEnqueued({ queue: 'mail', name: 'welcome', data: { to: 'bob', n: expect.any(Number) } }),
    );
    expect(error).toBeInstanceOf(EchoAssertionError);
    expect(error.message.split('\n')).toEqual([
      "assertEnqueued: no job of queue 'mail' matches { name: 'welcome', data: { to: 'bob', n: Any<Number> } }",
      'Enqueued there: 3 jobs',
      "  pending   'welcome' { to: 'ada' }",
      "  pending   'digest' { day: 'mon' }",
      "  scheduled 'digest' { day: 'tue' }, at 2090-01-01T00:00:00.000Z, priority 3, opts { attempts: 9 }",
      'No longer enqueued: 1 completed',
      "In other queues: 'male' 1",
    ]);
    expect(error.stack).toContain('enqueued.spec.ts');
  });

  it('lists twenty jobs at most, and cuts long ones', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueueMany(
      'mail',
      Array.from({ length: 50 }, () => ({ name: 'n', data: Array(100).fill('x'.repeat(100)) })),
    );
    const { message } = await failure(kit.assertEnqueued({ queue: 'mail', name: 'm' }));
    expect(message).toContain('... and 30 more');
    expect(message.length).toBeLessThan(20 * 320);
  });

  it('takes a queue as it was defined', async () => {
    const Mail = defineQueue<{ welcome: { to: string } }>('mail');
    const { kit, jobs } = await boot();
    await jobs.enqueue(Mail, 'welcome', { to: 'ada' });
    await kit.assertEnqueued({ queue: Mail, name: 'welcome' });
    await kit.refuteEnqueued({ queue: Mail, name: 'welcome', data: { to: 'bob' } });
    // @ts-expect-error a name that the queue does not declare
    await kit.refuteEnqueued({ queue: Mail, name: 'digest' });
    expect(await kit.enqueued(Mail)).toHaveLength(1);
  });

  it.each<[string, object, string]>([
    ['a misspelt part', { queue: 'mail', dta: 1 }, "assertEnqueued: unknown option 'dta'"],
    ['what other libraries call it', { queue: 'mail', delay: 1 }, "unknown option 'delay' (here: delayMs)"],
    ['no queue', { name: 'welcome' }, "assertEnqueued needs a queue: { queue: 'mail' }"],
    ['both times', { queue: 'mail', delayMs: 1, runAt: 1 }, 'give delayMs or runAt, not both'],
    ['a time that is none', { queue: 'mail', runAt: new Date(Number.NaN) }, 'runAt (milliseconds since 1970) must be'],
    ['null for a time', { queue: 'mail', runAt: null }, 'runAt (milliseconds since 1970) must be'],
    [
      'a misspelt option',
      { queue: 'mail', opts: { attemps: 4 } },
      "assertEnqueued opts: unknown option 'attemps'. Known",
    ],
    ['an option that does not come along', { queue: 'mail', opts: { maxStalls: 7 } }, "unknown option 'maxStalls'"],
    ['an option out of place', { queue: 'mail', opts: { lane: 't' } }, 'lane stands beside opts, not in it'],
    ['options that are none', { queue: 'mail', opts: 5 }, 'assertEnqueued opts must be an object, got 5'],
    [
      'attempts that are none',
      { queue: 'mail', opts: { attempts: Number.NaN } },
      'opts.attempts must be a whole number',
    ],
    ['a misspelt part of a backoff', { queue: 'mail', opts: { backoff: { delay: 1 } } }, "an unknown part 'delay'"],
    ['a backoff that is none', { queue: 'mail', opts: { backoff: 5 } }, 'backoff must be { type, delayMs }'],
    ['a name that is none', { queue: 'mail', name: 5 }, 'name must be a string, got 5'],
    ['a priority that is none', { queue: 'mail', priority: 'x' }, 'priority must be a whole number'],
    ['a lane that is none', { queue: 'mail', lane: ['g'] }, 'lane must be a name, or [group, lane]'],
    ['data that no job can hold', { queue: 'mail', data: { f: () => 1 } }, 'data.f is a function'],
    ['an instance that is not there', { queue: 'mail', instance: 'x' }, 'There is one without a name'],
  ])('refuses %s', async (_, match, message) => {
    const { kit } = await boot();
    for (const method of ['assertEnqueued', 'refuteEnqueued'] as const) {
      const error = await failure(kit[method](match as { queue: string }));
      expect(error).toBeInstanceOf(EchoArgumentError);
      expect(error.message).toContain(message.replace('assertEnqueued', method));
    }
  });
});

describe('kit.refuteEnqueued()', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();

  it('lists what should not be there', async () => {
    const { kit, jobs } = await kits.boot({});
    await kit.refuteEnqueued({ queue: 'mail' });
    await jobs.enqueue('mail', 'welcome', { to: 'ada' });
    await kit.refuteEnqueued({ queue: 'mail', name: 'digest' });
    await kit.refuteEnqueued({ queue: 'mail', data: { to: 'bob' } });
    const error = await failure(kit.refuteEnqueued({ queue: 'mail', name: 'welcome' }));
    expect(error).toBeInstanceOf(EchoAssertionError);
    expect(error.message).toBe(
      "refuteEnqueued: 1 job of queue 'mail' matches { name: 'welcome' }\n  pending   'welcome' { to: 'ada' }",
    );
  });

  it('takes no count', async () => {
    const { kit } = await kits.boot({});
    const match = { queue: 'mail', count: 1 };
    expect((await failure(kit.refuteEnqueued(match))).message).toContain("refuteEnqueued: unknown option 'count'");
  });
});
