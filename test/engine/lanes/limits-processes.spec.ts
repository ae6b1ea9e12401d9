import { expect, it } from '@jest/globals';
import { describeWithProcess } from '../../support/availability.js';
import { until } from '../../support/until.js';
import { endWorkers } from '../../support/worker-process.js';
import { hungry, numbers, serverMs, useStage } from '../jobs/stage.js';
import { Crew } from './crew.js';

const SIZE = 4;

/** How often scripts were called, by their first key: `leader` is a beat, `pending` a claim, `lanes` an unparking. */
function callsOf(said: string[][]): Map<string, number> {
  const calls = new Map<string, number>();
  for (const [command, , , key] of said) {
    if (!command!.toLowerCase().startsWith('evalsha')) continue;
    const what = key!.slice(key!.lastIndexOf(':') + 1);
    calls.set(what, (calls.get(what) ?? 0) + 1);
  }
  return calls;
}

const plain = (count: number, data: object = {}) => numbers(count).map(() => ({ name: 'job', data }));

describeWithProcess('a limit of a queue that four processes serve', () => {
  endWorkers();
  const stage = useStage();

  it('on how many run is never exceeded, and the next one starts when one ends, not with a beat', async () => {
    const { jobs } = await stage.connect();
    await jobs.limit('q', { concurrency: 3 });
    const crew = await Crew.start(stage.server.url, stage.control, SIZE, { concurrency: 10 });
    const ear = await stage.overhear();
    for (const lane of [null, 'A']) {
      await ear.said();
      const { completed } = (await jobs.counts('q')).metrics;
      await jobs.enqueueMany(
        'q',
        plain(300, { ms: 1 }).map((item) => ({ ...item, opts: { lane } })),
      );
      let most = 0;
      const ended = () => stage.control.hget('emq:{q}:metrics:completed', 'count').then(Number);
      while ((await ended()) < completed + 300) {
        const looks = await Promise.all(numbers(20).map(() => stage.control.zcard('emq:{q}:active')));
        most = Math.max(most, ...looks);
      }
      expect([lane, most]).toEqual([lane, 3]);
      const calls = callsOf(await ear.said());
      expect(calls.get('leader') ?? 0).toBeLessThan(30);
      expect(calls.get('pending')).toBeLessThan(2 * 300); // of those who are woken, few come too late
    }
    await crew.closeAll();
  });

  it('on how many run counts what killed processes held until its leases lapse, and then lets others run', async () => {
    const { jobs } = await stage.connect();
    await jobs.limit('q', { concurrency: 3 });
    const crew = await Crew.start(stage.server.url, stage.control, SIZE, { concurrency: 10, leaseMs: 1000 });
    const hanging = await jobs.enqueueMany('q', plain(3, { deeds: ['hang'] }));
    await jobs.enqueueMany('q', plain(60, { ms: 1 }));
    for (const { id } of hanging) await crew.killHolderOf(id);
    expect(crew.size).toBeGreaterThan(0);
    expect(crew.size).toBeLessThan(SIZE);
    let most = 0;
    for (let ended = 0; ended < 63; ended = (await jobs.counts('q')).metrics.completed) {
      most = Math.max(most, ...(await Promise.all(numbers(20).map(() => stage.control.zcard('emq:{q}:active')))));
    }
    expect(most).toBe(3);
    expect((await jobs.counts('q')).metrics.stalled).toBe(3);
    await crew.closeAll();
  });

  it('of time leaves the server in peace until the exact time: nobody claims, then who is woken does', async () => {
    const { jobs } = await stage.connect();
    const crew = await Crew.start(stage.server.url, stage.control, SIZE, { concurrency: 10 });
    const perMs = 4_000;
    await jobs.limit('q', { rate: { limit: 1, perMs } });
    await jobs.enqueueMany('q', plain(3)); // of which one stays
    const ended = async (n: number) => {
      await until(async () => (await jobs.counts('q')).metrics.completed === n, { what: `job ${n}` });
      await hungry(stage.control, 'q', SIZE);
      return serverMs(stage.control);
    };
    const first = await ended(1);
    const ear = await stage.overhear();
    await ear.said();
    // The test itself must not ask meanwhile, or it would hear itself.
    const heard = new Promise<void>((resolve) => {
      const subscriber = stage.server.client();
      subscriber.on('message', (_channel: string, text: string) => {
        if (text.includes('completed')) resolve();
      });
      subscriber.set('emq:{q}:heard', '1', 'EX', 60).then(() => subscriber.subscribe('emq:{q}:events'));
    });
    await heard;
    const calls = callsOf(await ear.said());
    // When the time is up, who leads says so and claims behind it; who is woken by that claims too, as does who is woken by
    // the job's end.
    expect(calls.get('lanes') ?? 0).toBe(1);
    expect(calls.get('pending') ?? 0).toBeLessThanOrEqual(3);
    const second = await ended(2);
    expect(second - first).toBeGreaterThan(perMs / 2);
    await crew.closeAll();
  });
});

describeWithProcess('a lane that waits for its time, when the process that leads its queue', () => {
  endWorkers();
  const stage = useStage();

  /** Two processes, of which the one that was there first leads; the lane waits. */
  const parked = async () => {
    const echo = await stage.connect();
    const crew = await Crew.start(stage.server.url, stage.control, 1, { concurrency: 2 });
    const leader = await until(() => stage.control.get('emq:{q}:leader'), { what: 'the leader' });
    await crew.add();
    await hungry(stage.control, 'q', 2);
    await echo.lanes.configure('q', 'A', { rate: { limit: 1, perMs: 2000 } });
    await echo.jobs.enqueueMany(
      'q',
      plain(2).map((item) => ({ ...item, opts: { lane: 'A' } })),
    );
    const completed = (n: number) => async () => (await echo.jobs.counts('q')).metrics.completed === n;
    await until(completed(1), { what: 'the first job' });
    const due = (await serverMs(stage.control)) + 2000;
    const goesOn = async () => {
      expect(await stage.control.zcard('emq:{q}:lanes:parked')).toBe(1);
      await until(completed(2), { what: 'the second job', timeoutMs: 8000 });
      expect(await stage.control.get('emq:{q}:leader')).not.toBe(leader);
      return (await serverMs(stage.control)) - due;
    };
    return { crew, goesOn };
  };

  it('closes, is brought back by another one, which is told at once', async () => {
    const { crew, goesOn } = await parked();
    await crew.closeOldest();
    expect(await goesOn()).toBeLessThan(2500); // not with the end of the leadership, after 10 s, and a beat
    await crew.closeAll();
  });

  it('is killed, is brought back by another one within its beat after the leadership has run out', async () => {
    const { crew, goesOn } = await parked();
    await crew.killOldest();
    expect(await stage.control.pexpire('emq:{q}:leader', 200)).toBe(1); // not the ten seconds that it has
    await goesOn();
    await crew.closeAll();
  });
});
