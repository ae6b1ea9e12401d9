import { expect, it } from '@jest/globals';
import { describeWithProcess } from '../../support/availability.js';
import { until } from '../../support/until.js';
import { endWorkers } from '../../support/worker-process.js';
import { unapplied } from './balance.js';
import { type Ground, Walker, walkThroughKills } from './kill-walk.js';
import { Diary, node, useFlowStage } from './stage.js';

const MINUTES = 60_000;
const QUEUES = ['leaf', 'middle', 'top'];

describeWithProcess('a flow whose workers are killed, at any point', () => {
  endWorkers();
  const stage = useFlowStage();

  const ground = async (): Promise<Ground> => ({
    nodes: [stage.server.process],
    cluster: false,
    client: stage.control,
    echo: await stage.connect(),
  });
  const flow = (data: object) => node('top', 'root', [node('middle', 'mid', [{ queue: 'leaf', name: 'leaf', data }])]);

  it(
    'between the settling of a leaf and the release of the root, runs the root once',
    async () => {
      const here = await ground();
      const diary = new Diary();
      diary.serve(here.echo, ['top']);
      const points = await walkThroughKills(here, {
        queues: ['leaf', 'middle'],
        all: QUEUES,
        flow: flow({ hold: true }),
        ended: async () => (await here.echo.jobs.counts('top')).metrics.completed,
      });
      expect(points).toBeGreaterThan(8);
      expect(diary.names).toEqual(Array.from({ length: points + 1 }, () => 'root'));
    },
    15 * MINUTES,
  );

  it(
    'between the death of a leaf and that of the root, lets the root die once',
    async () => {
      const here = await ground();
      const points = await walkThroughKills(here, {
        queues: ['leaf', 'middle'],
        all: QUEUES,
        flow: flow({ hold: true, die: true }),
        ended: async () => (await here.echo.jobs.counts('top')).metrics.failed,
      });
      expect(points).toBeGreaterThan(3);
      expect(await here.echo.jobs.counts('top')).toMatchObject({ dead: points + 1, awaitingChildren: 0, pending: 0 });
    },
    15 * MINUTES,
  );

  it(
    'between adding children and running again behind them, runs the root to its end once',
    async () => {
      const here = await ground();
      const grow = [node('leaf', 'one')];
      const points = await walkThroughKills(here, {
        queues: ['leaf', 'top'],
        all: ['leaf', 'top'],
        flow: { queue: 'top', name: 'root', data: { hold: true, grow } },
        ended: async () => (await here.echo.jobs.counts('top')).metrics.completed,
      });
      expect(points).toBeGreaterThan(12);
    },
    15 * MINUTES,
  );

  it(
    'of its landing, lands whole or not at all',
    async () => {
      const here = await ground();
      const tree = node('top', 'root', [
        node('top', 'a', [node('leaf', 'a.a')]),
        node('middle', 'b', [node('leaf', 'b.a')]),
      ]);
      for (let point = 0, landed = 0; ; point++) {
        const { tap, worker } = await Walker.start(here);
        let stopped = false;
        tap.stopBehind(point).then(() => {
          stopped = true;
        });
        worker.send({ type: 'land', flow: tree });
        const whole = async () => (await stage.control.keys('emq:{*}:job:JOB???????????')).length === 5;
        await until(async () => stopped || (await whole()), { what: `point ${point}, or the end` });
        await worker.kill();
        await tap.close();
        const wasThere = (await here.echo.jobs.counts('top')).awaitingChildren > 0;
        if (wasThere) landed += 1;
        expect([point, wasThere]).toEqual([point, point > 0]);
        const relaying = await stage.connect();
        const diary = new Diary();
        diary.serve(relaying, QUEUES);
        const ended = async () => (await here.echo.jobs.counts('top')).metrics.completed === 2 * landed;
        await until(ended, { what: `the flow to end after point ${point}` });
        await until(async () => (await unapplied(stage.control, QUEUES)).length === 0, { what: 'all to be applied' });
        await relaying.close();
        expect(diary.names.sort()).toEqual(wasThere ? ['a', 'a.a', 'b', 'b.a', 'root'] : []);
        if (!stopped) return expect(point).toBeGreaterThan(8);
      }
    },
    15 * MINUTES,
  );
});
