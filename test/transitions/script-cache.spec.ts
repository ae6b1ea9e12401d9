import { expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { ScriptName } from '../../lib/wire/transition.js';
import { describeWithProcess } from '../support/availability.js';
import { guardLeaks } from '../support/leaks.js';
import { closeAll, useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { useExecutor } from './executor.js';
import { Hand } from './hand.js';
import { SAMPLES } from './samples.js';

const names = Object.keys(SAMPLES) as ScriptName[];

describeWithProcess('the script cache', () => {
  const server = useServer({});
  const executor = useExecutor(server);
  guardLeaks();

  it.each(names)(
    'lost by the server, is filled again by a call of %s that its caller does not notice',
    async (name) => {
      const client = server.client();
      const queue = new Hand(client, executor.current);
      const { given, call } = SAMPLES[name][0]!;
      const calls = async (times: number) => {
        for (let n = 0; n < times; n++) {
          await server.flush();
          await given(queue);
          await queue.run(name, call);
        }
      };
      await calls(1);
      await client.script('FLUSH');
      const seen = await monitored(client, () => calls(2));
      expect(seen.filter((command) => command.startsWith('eval'))).toEqual(['evalsha', 'eval', 'evalsha']);
    },
  );
});

/** The names of the commands that the server received during `act`. */
async function monitored(client: Redis, act: () => Promise<void>): Promise<string[]> {
  const monitor = await client.monitor();
  const seen: string[] = [];
  monitor.on('monitor', (_time: string, [command]: string[], source: string) => {
    if (source !== 'lua') seen.push(command!.toLowerCase());
  });
  await act();
  await client.echo('end of the act');
  await until(() => seen.includes('echo'), { what: 'the end of the act' });
  await closeAll([monitor as Redis]);
  return seen;
}
