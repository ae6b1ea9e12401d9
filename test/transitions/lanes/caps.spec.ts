import { describe, expect, it } from '@jest/globals';
import type { Arg } from '../../../lib/wire/reply.js';
import { expectInvariants, InvariantWatch } from '../../support/invariants.js';
import { guardLeaks } from '../../support/leaks.js';
import { useServer } from '../../support/server.js';
import { useExecutor } from '../executor.js';
import { Hand, id, PAST } from '../hand.js';
import { SEP } from '../laned.js';
import { Random } from '../random.js';
import { readable } from '../state-table.js';

const STEPS = 20_000;
const CAP = 2;
/** Of a few lanes, one of them uncapped by name and two in a group. */
const LANES = ['a', 'b', 'c', `g${SEP}a`, `g${SEP}b`];
const SEED = Number(process.env.ECHOMQ_SEED ?? Date.now() % 2 ** 31);

/** How many jobs of each lane run, told by what stands in `active` and by nothing else. */
const RUNNING = `
local running = {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local lane = redis.call('HGET', KEYS[2] .. id, 'lane') or redis.call('HGET', KEYS[3], id) or ''
  running[lane] = (running[lane] or 0) + 1
end
local flat = {}
for lane, n in pairs(running) do flat[#flat + 1] = lane; flat[#flat + 1] = n end
return flat`;

/** Many steps with one look each; what the steps answer is held to nothing here, as in other walks. */
class CapWalk {
  readonly log: string[] = [];
  readonly ghosts: string[] = [];
  readonly met = { full: 0, lapsed: 0, lost: 0, settled: 0 };
  private minted = 0;
  private readonly tokens: { id: string; token: string }[] = [];

  constructor(
    private readonly queue: Hand,
    private readonly random: Random,
  ) {}

  async step(): Promise<void> {
    await this.random.pick(this.choices)();
    const { keys, client } = this.queue;
    const flat = (await client.eval(
      RUNNING,
      3,
      keys.active,
      `${keys.base}job:`,
      `${keys.base}lanes:active`,
    )) as unknown[];
    for (let i = 0; i < flat.length; i += 2) {
      const [lane, running] = [String(flat[i]), Number(flat[i + 1])];
      if (lane !== '' && running > CAP) throw new Error(`${running} jobs of lane ${JSON.stringify(lane)} run`);
      if (running === CAP) this.met.full++;
    }
  }

  private async run(name: Parameters<Hand['run']>[0], args: readonly Arg[]): Promise<unknown> {
    const answer = readable(await this.queue.run(name, args));
    this.log.push(`${name} ${JSON.stringify(args)} -> ${JSON.stringify(answer)}`);
    return answer;
  }

  private readonly enqueue = (): Promise<unknown> => {
    const args: Arg[] = [];
    for (let n = this.random.below(4); n >= 0; n--) {
      const lane = this.random.pick(['', ...LANES, `one${this.minted}`]);
      args.push(id(this.minted++), 'p', this.random.pick(['', '', '60000']));
      args.push(...(lane === '' ? [0] : [1, 'lane', lane]));
    }
    return this.run('enqueue', args);
  };

  private readonly claim = async (): Promise<void> => {
    const flat = (await this.run('claim', [60_000, 1 + this.random.below(20), '', ''])) as string[];
    for (let i = 0; i < flat.length; i += 3) this.tokens.push({ id: flat[i]!, token: flat[i + 2]! });
    this.tokens.splice(0, this.tokens.length - 60);
  };

  /** Current tokens and outgrown ones, each settled by its own kind. */
  private readonly settle = async (): Promise<void> => {
    if (this.tokens.length === 0) return;
    const items = Array.from({ length: 1 + this.random.below(4) }, () => this.random.pick(this.tokens));
    const kind = this.random.pick(['complete', 'complete', 'retry', 'release', 'wait', 'extend'] as const);
    const delay = () => this.random.pick(['', '', '60000', 'lane:0']);
    const args: Arg[] = items.flatMap(({ id: jobId, token }) => {
      if (kind === 'complete') return [jobId, token, 0, ''];
      if (kind === 'retry') return [jobId, token, this.random.pick([0, 0, 60_000]), 3, 'boom'];
      return kind === 'release' ? [jobId, token, delay()] : [jobId, token];
    });
    const head = kind === 'extend' ? [60_000] : kind === 'complete' || kind === 'retry' ? [0] : [];
    await this.run(kind, [...head, ...args]);
    this.met.settled++;
  };

  /** A process is killed: what it holds lapses. */
  private readonly kill = async (): Promise<void> => {
    const { client, keys } = this.queue;
    const held = await client.zrange(keys.active, 0, '-1');
    const dying = held.filter(() => this.random.chance(0.5));
    if (dying.length > 0) await client.zadd(keys.active, 'XX', ...dying.flatMap((jobId) => [PAST, jobId]));
    this.met.lapsed += dying.length;
    await this.run('reap', [this.random.pick([2, 1000]), 2, this.random.pick(['', 'beef.x']), 0]);
  };

  private readonly lose = async (): Promise<void> => {
    const { client, keys } = this.queue;
    const set = this.random.pick([
      keys.active,
      keys.schedule,
      keys.pending,
      ...LANES.map((lane) => `${keys.base}lane:${lane}`),
    ]);
    const lost = await client.zrandmember(set);
    if (lost === null || (await client.del(keys.row(lost))) === 0) return;
    this.log.push(`${lost} is deleted by hand`);
    this.ghosts.push(lost);
    this.met.lost++;
  };

  private readonly remove = async (): Promise<void> => {
    const ids = Array.from({ length: 3 }, () => id(Math.max(0, this.minted - 1 - this.random.below(40))));
    await this.run(this.random.pick(['remove', 'cancel']), [0, ...ids]);
  };

  private readonly pauseLane = (): Promise<unknown> =>
    this.run('lane', ['lane', this.random.pick(LANES), 'paused', this.random.pick(['1', '', ''])]);

  private readonly promote = async (): Promise<void> => {
    const { client, keys } = this.queue;
    for (const jobId of await client.zrange(keys.schedule, 0, '-1'))
      await client.zadd(keys.schedule, 'XX', PAST, jobId);
    await this.run('promote', [1000]);
    const dead = await client.zrange(keys.dead, 0, '9');
    if (dead.length > 0) await this.run('reprocess', [1, ...dead]);
  };

  private readonly choices: readonly (() => Promise<unknown>)[] = [
    ...[
      this.enqueue,
      this.enqueue,
      this.enqueue,
      this.claim,
      this.claim,
      this.claim,
      this.claim,
      this.settle,
      this.settle,
    ],
    ...[this.settle, this.settle, this.settle, this.kill, this.lose, this.remove, this.pauseLane, this.promote],
  ];
}

describe('a cap', () => {
  const server = useServer();
  const executor = useExecutor(server);
  guardLeaks();

  it(`of ${CAP} is never exceeded in ${STEPS} steps, with killed processes and rows deleted by hand (seed ${SEED})`, async () => {
    const queue = new Hand(server.client(), executor.current);
    const walk = new CapWalk(queue, new Random(SEED));
    const watch = new InvariantWatch();
    await queue.run('lane', ['all', '', 'cap', CAP]);
    let n = 0;
    try {
      for (; n < STEPS; n++) {
        await walk.step();
        if (n % 100 === 0) await expectInvariants(queue.client, 'q', { watch, ghosts: walk.ghosts });
      }
    } catch (error) {
      throw new Error(
        `ECHOMQ_SEED=${SEED}, step ${n}: ${(error as Error).message}\n  ${walk.log.slice(-25).join('\n  ')}`,
      );
    }
    expect(walk.met).toEqual({
      full: expect.any(Number),
      lapsed: expect.any(Number),
      lost: expect.any(Number),
      settled: expect.any(Number),
    });
    for (const times of Object.values(walk.met)) expect(times).toBeGreaterThan(100);
  }, 900_000);
});
