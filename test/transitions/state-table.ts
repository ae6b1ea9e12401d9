import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { EchoError } from '../../lib/kernel/errors.js';
import type { Arg, Reply } from '../../lib/wire/reply.js';
import { type Edition, hasPlainEdition } from '../../lib/wire/script-text.js';
import type { ScriptName } from '../../lib/wire/transition.js';
import { describeWithProcess } from '../support/availability.js';
import { checkInvariants } from '../support/invariants.js';
import { guardLeaks } from '../support/leaks.js';
import { type TestServer, useServer } from '../support/server.js';
import { applied, type Changes } from './changes.js';
import { Ear } from './ear.js';
import { useExecutor } from './executor.js';
import { Hand } from './hand.js';
import { timed } from './server-time.js';

type Given = (queue: Hand) => Promise<unknown>;

/** One row of a table. */
export interface Row {
  given?: Given;
  /** Processes that listen for being woken; everybody else is dead. Default: `p1`. */
  listening?: readonly string[];
  /** ARGV. */
  call: readonly Arg[];
  /** KEYS, where the descriptor does not say. */
  keys?: string[];
  /** What comes back, its bytes read as UTF-8; of a refusal, its code and a part of its message. */
  answer: unknown;
  /** What is different afterwards. Default: nothing. */
  changes?: Changes;
  /** What is said on the channels of the queue. Default: nothing. */
  hears?: readonly [channel: string, message: unknown][];
  /** Members whose rows were deleted by hand, as they stand after the call. */
  ghosts?: readonly string[];
  /** False for a state to which no transitions lead: then the invariants need not hold. */
  reachable?: boolean;
}

/** What a spec writes its table with. */
export interface Table {
  readonly server: TestServer;
  /** The queue; inside tests only. */
  readonly queue: Hand;
  it(title: string, row: Row): void;
  /** Each of these calls answers EMQARG and writes nothing. */
  refuses(title: string, given: Given, calls: readonly (readonly Arg[])[]): void;
  /** While any one of these keys holds another type, the call answers EMQTYPE, names the key, and writes nothing. */
  refusesTypes(call: readonly Arg[], keys: readonly string[], given?: Given): void;
}

/** Small hashes are stored as one list, larger ones as a table. The old name of the setting is known to every server. */
const AS_TABLES = { config: { 'hash-max-ziplist-entries': '1' } };

/**
 * Declares the table of one transition, and runs it under both encodings of rows, and by both editions of the script where it has
 * two: none of that may make a difference.
 */
export function describeTransition(name: ScriptName, declare: (table: Table) => void): void {
  describe(name, () => declare(makeTable(name, useServer())));
  const other: Edition = hasPlainEdition(name) ? 'whole' : 'plain';
  describeWithProcess(`${name}, rows being hash tables`, () => declare(makeTable(name, useServer(AS_TABLES), other)));
}

function makeTable(name: ScriptName, server: TestServer, edition: Edition = 'plain'): Table {
  const executor = useExecutor(server, edition);
  guardLeaks();
  let queue: Hand;
  let ear: Ear;
  const client = useClient(server);
  beforeEach(async () => {
    queue = new Hand(client(), executor.current);
    ear = await Ear.open(server.client(), client(), queue.keys.base);
  });

  const untouched = async (call: readonly Arg[], code: string, saying: string) => {
    const before = await queue.dump();
    const error = await queue.run(name, call).then(
      () => undefined,
      (fault: EchoError) => fault,
    );
    expect({ call, code: error?.code, message: error?.message }).toEqual({
      call,
      code,
      message: expect.stringContaining(saying),
    });
    expect(await queue.dump()).toEqual(before);
  };

  return {
    server,
    get queue() {
      return queue;
    },
    it(title, row) {
      it(title, async () => {
        await row.given?.(queue);
        await ear.listen(['beat', 'settled', ...(row.listening ?? ['p1']).map((process) => `w:${process}`)]);
        const before = await queue.dump();
        const answer = await timed(client(), () => answerOf(queue.run(name, row.call, row.keys)));
        const after = await queue.dump();
        expect(answer).toEqual(row.answer);
        expect(after).toEqual(applied(before, row.changes ?? {}));
        expect(await ear.messages()).toEqual(row.hears ?? []);
        expect(await strangers(client(), queue)).toEqual([]);
        if (row.reachable !== false) expect(checkInvariants(after, { ghosts: row.ghosts ?? [] })).toEqual([]);
      });
    },
    refuses(title, given, calls) {
      it(title, async () => {
        await given(queue);
        for (const call of calls) await untouched(call, 'EMQARG', '');
      });
    },
    refusesTypes(call, keys, given = async () => undefined) {
      it.each(keys)('refuses a queue whose %s holds another type, and writes nothing', async (key) => {
        await given(queue);
        const full = queue.keys.base + key;
        await client().del(full);
        await client().set(full, 'x');
        await untouched(call, 'EMQTYPE', `${full} holds a string`);
      });
    },
  };
}

/** One plain client for a whole file. */
function useClient(server: TestServer): () => ReturnType<TestServer['client']> {
  let client: ReturnType<TestServer['client']> | undefined;
  beforeAll(() => {
    client = server.client();
  });
  return () => client!;
}

async function answerOf(call: Promise<Reply>): Promise<unknown> {
  try {
    return readable(await call);
  } catch (error) {
    if (error instanceof EchoError) return { code: error.code, message: error.message };
    throw error;
  }
}

/** A reply with its bytes as text. */
export function readable(reply: Reply): unknown {
  if (Array.isArray(reply)) return reply.map(readable);
  return Buffer.isBuffer(reply) ? reply.toString() : reply;
}

/** Keys that are not the queue's: no transition on one queue may make any. */
async function strangers(client: ReturnType<TestServer['client']>, queue: Hand): Promise<string[]> {
  return (await client.keys('*')).filter((key) => !key.startsWith(queue.keys.base));
}
