import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { EchoError } from '../../lib/kernel/errors.js';
import type { Arg } from '../../lib/wire/reply.js';
import type { ScriptName } from '../../lib/wire/transition.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { useExecutor } from './executor.js';
import { Hand } from './hand.js';
import { timed } from './server-time.js';
import { readable } from './state-table.js';

/** All that stands under a prefix, beside its queues. */
export interface PrefixState {
  version?: unknown;
  /** Node number to expiry. */
  nodes?: Record<string, unknown>;
  /** Node number to process. */
  owners?: Record<string, unknown>;
}

/** One row of a table of a step that concerns a whole prefix. */
export interface PrefixRow {
  given?: { version?: string; nodes?: Record<string, number>; owners?: Record<string, string> };
  call: readonly Arg[];
  answer: unknown;
  /** All there is afterwards. */
  after: PrefixState;
}

const [VERSION, NODES, OWNERS] = ['{emq}:version', '{emq}:nodes', '{emq}:nodes:owner'];

/** The table runner for steps on `{emq}:version`, `{emq}:nodes` and `{emq}:nodes:owner`. */
export function usePrefixTable(name: ScriptName) {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();
  const test: { client?: Redis; hand?: Hand } = {};
  beforeEach(() => {
    test.client = server.client();
    test.hand = new Hand(test.client, executor.current);
  });
  afterEach(async () => {
    const known = [VERSION, NODES, OWNERS];
    const control = server.client();
    expect((await control.keys('*')).filter((key) => !known.includes(key))).toEqual([]);
    control.disconnect();
  });
  const run = (call: readonly Arg[]) => test.hand!.run(name, call);

  const state = async (client: Redis): Promise<PrefixState> => {
    const version = await client.get(VERSION!);
    const flat = await client.zrange(NODES!, 0, '-1', 'WITHSCORES');
    const owners = await client.hgetall(OWNERS!);
    const nodes = Object.fromEntries(flat.flatMap((x, n) => (n % 2 ? [] : [[x, Number(flat[n + 1])]])));
    return {
      ...(version === null ? {} : { version }),
      ...(flat.length === 0 ? {} : { nodes }),
      ...(Object.keys(owners).length === 0 ? {} : { owners }),
    };
  };
  const build = async (client: Redis, { version, nodes, owners }: NonNullable<PrefixRow['given']>) => {
    if (version !== undefined) await client.set(VERSION!, version);
    if (nodes) await client.zadd(NODES!, ...Object.entries(nodes).flatMap(([number, expiry]) => [expiry, number]));
    if (owners) await client.hset(OWNERS!, owners);
  };
  const refused = async (call: readonly Arg[], code: string, saying: string) => {
    const error = await run(call).then(
      () => undefined,
      (fault: EchoError) => fault,
    );
    expect({ call, code: error?.code, message: error?.message }).toEqual({
      call,
      code,
      message: expect.stringContaining(saying),
    });
  };

  return {
    run,
    build: (given: NonNullable<PrefixRow['given']>) => build(test.client!, given),
    state: () => state(test.client!),
    it(title: string, row: PrefixRow) {
      it(title, async () => {
        const client = test.client!;
        await build(client, row.given ?? {});
        expect(readable(await timed(client, () => run(row.call)))).toEqual(row.answer);
        expect(await state(client)).toEqual(row.after);
      });
    },
    refuses(title: string, given: NonNullable<PrefixRow['given']>, calls: readonly (readonly Arg[])[]) {
      it(title, async () => {
        const client = test.client!;
        await build(client, given);
        const before = await state(client);
        for (const call of calls) await refused(call, 'EMQARG', '');
        expect(await state(client)).toEqual(before);
      });
    },
    refusesTypes(call: readonly Arg[], keys: readonly string[]) {
      it.each(keys)('refuses a %s of another type, and writes nothing', async (key) => {
        await test.client!.rpush(key, 'x');
        await refused(call, 'EMQTYPE', `${key} holds a list`);
        expect(await test.client!.keys('*')).toEqual([key]);
      });
    },
  };
}
