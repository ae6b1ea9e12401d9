import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type Job, Jobs, OnJob, Processor, Snooze } from '../../../lib/index.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { failure } from '../apps.js';
import { useKits } from './kits.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
let ran: string[] = [];

@Processor('clock', { backoff: { type: 'fixed', delayMs: 10 * MINUTE } })
class Clockwork {
  private snoozed = 0;

  constructor(private readonly jobs: Jobs) {}

  @OnJob('note')
  note({ data }: Job<string>): void {
    ran.push(data);
  }

  @OnJob('later')
  async later({ data }: Job<string>): Promise<void> {
    ran.push(data);
    await this.jobs.enqueue('clock', 'note', `after ${data}`, { delayMs: MINUTE });
  }

  @OnJob('fail')
  fail({ data, attempt }: Job<string>): void {
    ran.push(`${data} ${attempt}`);
    throw new Error('no luck');
  }

  @OnJob('snooze')
  snooze({ data }: Job<string>): void {
    ran.push(data);
    this.snoozed += 1;
    if (this.snoozed < 3) throw new Snooze(5 * MINUTE);
  }
}

describe('kit.advance()', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();
  const boot = () => {
    ran = [];
    return kits.boot({ providers: [Clockwork] });
  };

  it('lets time pass: what is due then is pending, the rest waits so much less, in its order', async () => {
    const { kit, jobs } = await boot();
    for (const [data, delayMs] of [
      ['c', 90 * MINUTE],
      ['a', 30 * MINUTE],
      ['b', 60 * MINUTE],
    ] as const) {
      await jobs.enqueue('clock', 'note', data, { delayMs });
    }
    const before = await kit.enqueued('clock');
    expect(await kit.advance(29 * MINUTE)).toBe(0);
    expect(await kit.advance(2 * MINUTE)).toBe(1);
    expect(ran).toEqual([]);
    const after = await kit.enqueued('clock');
    expect(after.map(({ data, state }) => [data, state])).toEqual([
      ['a', 'pending'],
      ['b', 'scheduled'],
      ['c', 'scheduled'],
    ]);
    expect(before[1]!.runAt!.getTime() - after[1]!.runAt!.getTime()).toBe(31 * MINUTE);
    expect(await kit.drain()).toMatchObject({ completed: 1 });
    expect(await kit.advance(30 * MINUTE)).toBe(1);
    expect(await kit.advance(30 * MINUTE)).toBe(1);
    await kit.drain();
    // Due together, they are claimed as ever: by priority, then in mint order.
    expect(ran).toEqual(['a', 'c', 'b']);
  });

  it('makes a retry due after its backoff, and a snooze after its time', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('clock', 'fail', 'f');
    await jobs.enqueue('clock', 'snooze', 's');
    await kit.drain();
    expect(await kit.advance(9 * MINUTE)).toBe(1);
    await kit.drain();
    expect(await kit.advance(MINUTE)).toBe(1);
    await kit.drain();
    expect(ran).toEqual(['f 1', 's', 's', 'f 2']);
  });

  it('covers queues that this app only enqueues to, all or one of them', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueueMany('elsewhere', [
      { name: 'x', opts: { delayMs: HOUR } },
      { name: 'y', opts: { delayMs: 2 * HOUR } },
    ]);
    await jobs.enqueue('clock', 'note', 'n', { delayMs: HOUR });
    expect(await kit.advance(HOUR, { queue: 'elsewhere' })).toBe(1);
    await kit.assertEnqueued({ queue: 'elsewhere', name: 'x', delayMs: 0 });
    await kit.assertEnqueued({ queue: 'elsewhere', name: 'y', delayMs: HOUR });
    await kit.assertEnqueued({ queue: 'clock', delayMs: HOUR });
    expect(await kit.advance(HOUR)).toBe(2);
  });

  it('moves more jobs than a page or a call can hold', async () => {
    const { kit, jobs } = await boot();
    const many = Array.from({ length: 2500 }, (_, i) => ({ name: 'note', data: `${i}`, opts: { delayMs: HOUR + i } }));
    await jobs.enqueueMany('clock', many);
    expect(await kit.advance(HOUR / 2)).toBe(0);
    expect(await kit.advance(HOUR)).toBe(2500);
    expect((await kit.enqueued('clock')).map(({ data }) => data)).toEqual(many.map(({ data }) => data));
  });

  it('with 0 only looks what has become due meanwhile', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('clock', 'note', 'n', { delayMs: HOUR });
    expect(await kit.advance(0)).toBe(0);
    expect((await failure(kit.advance(-1))).message).toBe('advance(ms) must be a whole number from 0, got -1');
    expect((await failure(kit.advance(1, { name: 'x' } as object))).message).toContain(
      "advance options: unknown option 'name'",
    );
  });
});

describe('kit.drain({ scheduled: true })', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();
  const boot = () => {
    ran = [];
    return kits.boot({ providers: [Clockwork] });
  };

  it('runs jobs at their times, the earliest first, and what they enqueue at its own', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('clock', 'note', 'hour', { delayMs: HOUR });
    await jobs.enqueue('clock', 'later', 'minute', { delayMs: 10 * MINUTE });
    await jobs.enqueue('clock', 'later', 'now');
    expect(await kit.drain({ scheduled: true })).toMatchObject({ completed: 5 });
    expect(ran).toEqual(['now', 'after now', 'minute', 'after minute', 'hour']);
  });

  it('keeps the order of retries and other jobs as time would', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('clock', 'fail', 'f', { delayMs: 20 * MINUTE });
    await jobs.enqueue('clock', 'note', 'at 25', { delayMs: 25 * MINUTE });
    await jobs.enqueue('clock', 'note', 'at 35', { delayMs: 35 * MINUTE });
    expect(await kit.drain({ scheduled: true })).toMatchObject({ completed: 2, failed: 2, dead: 1 });
    expect(ran).toEqual(['f 1', 'at 25', 'f 2', 'at 35', 'f 3']);
  });

  it('runs under recursive: false each job once that was there, by its time', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('clock', 'note', 'b', { delayMs: HOUR });
    await jobs.enqueue('clock', 'later', 'a', { delayMs: 30 * MINUTE });
    await jobs.enqueue('clock', 'fail', 'f');
    expect(await kit.drain({ scheduled: true, recursive: false })).toMatchObject({ completed: 2, failed: 1 });
    expect(ran).toEqual(['f 1', 'a', 'b']);
    expect(await kit.enqueued('clock')).toHaveLength(2);
  });

  it('ends where a queue is paused, and leaves its jobs due', async () => {
    const { kit, jobs } = await boot();
    await jobs.enqueue('clock', 'note', 'n', { delayMs: HOUR });
    await jobs.pause('clock');
    expect(await kit.drain({ scheduled: true })).toMatchObject({ completed: 0 });
    expect(await jobs.counts('clock')).toMatchObject({ pending: 1, active: 0 });
  });
});

describe('a test that fakes the Date and nothing else', () => {
  const server = useServer();
  const kits = useKits(server);
  guardLeaks();
  afterEach(() => {
    jest.useRealTimers();
  });

  it('enqueues and drains as ever, years ahead or behind', async () => {
    const { kit, jobs } = await kits.boot({ providers: [Clockwork] });
    for (const now of ['2001-01-01', '2060-01-01']) {
      ran = [];
      jest.useFakeTimers({
        now: new Date(now),
        doNotFake: [
          ...([
            'setTimeout',
            'clearTimeout',
            'setInterval',
            'clearInterval',
            'setImmediate',
            'clearImmediate',
          ] as const),
          ...(['performance', 'hrtime', 'nextTick', 'queueMicrotask'] as const),
        ],
      });
      await jobs.enqueue('clock', 'note', `${new Date().getFullYear()}`);
      await jobs.enqueue('clock', 'note', 'later', { delayMs: HOUR });
      await kit.assertEnqueued({ queue: 'clock', delayMs: HOUR });
      await kit.drain({ scheduled: true });
      expect(ran).toEqual([now.slice(0, 4), 'later']);
    }
  });
});
