import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { Arg } from '../../lib/wire/reply.js';
import type { ScriptName } from '../../lib/wire/transition.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { Ear } from './ear.js';
import { useExecutor } from './executor.js';
import { type Fields, Hand, id, PAST } from './hand.js';
import { readable } from './state-table.js';

/** The job in the middle is the one whose row somebody has written to. */
const [A, B, C] = [id(1), id(2), id(3)];
const BATCH = [A, B, C];

/** A step that puts three jobs into pending, of which the second has `spoiled` in its row. */
interface Step {
  name: ScriptName;
  put(queue: Hand, jobId: string, fields: Fields): Promise<void>;
  /** `attempts` is what the middle row says, and so its token. */
  call(attempts: string): Arg[];
  answer: unknown;
}

const held = (queue: Hand, jobId: string, fields: Fields) => queue.active(jobId, fields);
const tokens = (attempts: string) => [
  [A, '1'],
  [B, attempts],
  [C, '1'],
];

const STEPS: readonly Step[] = [
  {
    name: 'promote',
    put: (queue, jobId, fields) => queue.scheduled(jobId, fields, PAST),
    call: () => [1000],
    answer: [3, -1, -1],
  },
  {
    name: 'reap',
    put: (queue, jobId, fields) => queue.active(jobId, fields, PAST),
    call: () => [1000, 9, '', 0],
    answer: [3, 0, -1, -1],
  },
  {
    name: 'reap',
    put: (queue, jobId, fields) => queue.active(jobId, { lease_epoch: 'beef.x1', ...fields }, PAST),
    call: () => [1000, 9, 'f00d.x1', 0],
    answer: [3, 0, -1, -1],
  },
  {
    name: 'release',
    put: held,
    call: (attempts) => tokens(attempts).flatMap((pair) => [...pair, '']),
    answer: [1, 1, 1],
  },
  {
    name: 'retry',
    put: held,
    call: (attempts) => ['0', ...tokens(attempts).flatMap((pair) => [...pair, '0', '9', 'boom'])],
    answer: ['pending', 'pending', 'pending'],
  },
  {
    name: 'reprocess',
    put: (queue, jobId, fields) => queue.dead(jobId, fields),
    call: () => [0, ...BATCH],
    answer: [1, 1, 1],
  },
  {
    name: 'reprocess',
    put: (queue, jobId, fields) => queue.dead(jobId, fields),
    call: () => [1, ...BATCH],
    answer: [1, 1, 1],
  },
  {
    name: 'reschedule',
    put: (queue, jobId, fields) => queue.scheduled(jobId, fields),
    call: () => BATCH.flatMap((jobId) => [jobId, '']),
    answer: [1, 1, 1],
  },
];

const WORDS = ['abc', '', '1.5', 'nan', 'inf', '9007199254740992', '1e400', '0x10'];
const SPOILED: readonly Fields[] = [
  ...WORDS.map((word) => ({ priority: word })),
  ...['stalls', 'uncharged', 'max_stalls'].flatMap((field) => WORDS.map((word) => ({ [field]: word }))),
  { attempts: 'abc' },
  { priority: 'abc', stalls: 'abc', uncharged: 'abc', attempts: 'abc' },
];

describe('a row that somebody has written to by hand', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();
  let client: Redis;
  let queue: Hand;
  let ear: Ear;
  beforeEach(async () => {
    client = server.client();
    queue = new Hand(client, executor.current);
    ear = await Ear.open(server.client(), client, queue.keys.base);
  });

  for (const { name, put, call, answer } of STEPS) {
    it(`costs nobody else of a call of ${name} ${call('1').join(' ')} anything, and a process is woken`, async () => {
      for (const spoiled of SPOILED) {
        await server.flush();
        await ear.listen(['w:p1']);
        await put(queue, A, { priority: -1 });
        await put(queue, B, {});
        await client.hset(queue.keys.row(B), spoiled);
        await put(queue, C, { priority: 2 });
        await queue.hungry('p1');
        const got = await queue.run(name, call(String(spoiled.attempts ?? 1))).then(readable, String);
        const pending = await client.zrange(queue.keys.pending, 0, '-1');
        const states = await Promise.all(BATCH.map((jobId) => client.hget(queue.keys.row(jobId), 'state')));
        expect({ spoiled, got, pending, states, heard: await ear.messages() }).toEqual({
          spoiled,
          got: answer,
          pending: BATCH,
          states: ['pending', 'pending', 'pending'],
          heard: [['w:p1', '']],
        });
      }
    });
  }

  it('is claimed and completed like any other', async () => {
    await queue.pending(A);
    await queue.pending(B);
    await client.hset(queue.keys.row(B), { priority: 'abc', stalls: 'abc', uncharged: 'abc', attempts: 'abc' });
    await queue.pending(C);
    const claimed = readable(await queue.run('claim', [30_000, 3, 'f00d.x1', 'p1'])) as string[];
    expect(claimed).toEqual([A, 'p', 1, 0, B, 'p', 1, 0, C, 'p', 1, 0]);
    const settled = BATCH.flatMap((jobId) => [jobId, '1@f00d.x1', 0, '']);
    expect(await queue.run('complete', [0, ...settled])).toEqual([1, 1, 1]);
  });

  it('is buried for its lapses like any other, counted from none', async () => {
    for (const jobId of BATCH) await queue.active(jobId, {}, PAST);
    await client.hset(queue.keys.row(B), { stalls: 'abc', max_stalls: 'abc' });
    expect(readable(await queue.run('reap', [1000, 0, '', 1]))).toEqual([0, 3, -1, -1, ...BATCH]);
    expect(await client.hget(queue.keys.row(B), 'last_error')).toBe('lease lapsed 1 times');
  });
});

describe('a metric that somebody has set to a word', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();

  /** A call of each step that counts, the metrics it counts in, and its answer. */
  const CALLS: [
    ScriptName,
    metrics: string[],
    given: (queue: Hand) => Promise<unknown>,
    call: Arg[],
    answer: unknown,
  ][] = [
    ['enqueue', ['enqueued'], async () => undefined, [A, 'p', '', 0, B, 'p', '', 0], [1, 1]],
    ['complete', ['completed'], (queue) => queue.active(A), [0, A, 1, 0, ''], [1]],
    ['retry', ['retried'], (queue) => queue.active(A), [0, A, 1, 0, 3, 'boom'], ['pending']],
    ['retry', ['failed'], (queue) => queue.active(A), [0, A, 1, 0, 1, 'boom'], ['dead']],
    ['release', ['failed'], (queue) => queue.active(A, { cancel: 1 }), [A, 1, ''], [1]],
    ['reap', ['stalled'], (queue) => queue.active(A, {}, PAST), [1000, 2, '', 0], [1, 0, -1, -1]],
    ['reap', ['stalled', 'failed'], (queue) => queue.active(A, {}, PAST), [1000, 0, '', 0], [0, 1, -1, -1, A]],
    ['remove', ['removed'], (queue) => queue.pending(A), [0, A], [1]],
    ['cancel', ['removed'], (queue) => queue.pending(A), [0, A], [1]],
    ['trim', ['removed'], (queue) => queue.dead(A), [0, 10], 1],
    ['obliterate', ['removed'], (queue) => queue.pending(A), [0, 10], 1],
  ];

  it.each(CALLS)('does not keep %s from doing its work (%j)', async (name, metrics, given, call, answer) => {
    const client = server.client();
    const queue = new Hand(client, executor.current);
    const always = async () => {
      const got = await queue.run(name, call).then(readable, String);
      const { 'metrics:enqueued': _enqueued, ...dump } = await queue.dump();
      for (const metric of metrics) delete dump[`metrics:${metric}`];
      return { got, keys: Object.keys(dump), rows: dump[`job:${A}`] };
    };
    await given(queue);
    const well = await always();
    await server.flush();
    await given(queue);
    for (const metric of metrics) await client.hset(`${queue.keys.base}metrics:${metric}`, 'count', 'abc');
    expect(await always()).toEqual(well);
    expect(well.got).toEqual(answer);
  });
});
