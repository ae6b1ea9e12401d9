import { expect } from '@jest/globals';
import type { Arg } from '../../lib/wire/reply.js';
import { groupOf } from '../support/lane-invariants.js';
import type { Hand } from './hand.js';
import type { Random } from './random.js';
import { Ids, Walk } from './walk.js';

/** Names that are asked for often, some of them of groups, and some that look like other keys. */
const LANES = ['a', 'b', 'c', 'g\u001fa', 'g\u001fb', 'h\u001fa', 'x:y', '{x}', 'waiting', 'job:JOB00000000001'];
const HOUR = 3_600_000;
const HELD = '\u001f';

export interface LaneWalkOptions {
  /** The cap of all lanes, which nothing changes; undefined: caps come and go. */
  cap?: number;
}

/**
 * A walk through a queue with lanes, groups, caps, rates, limits and deduplication keys. Rows are deleted by hand, leases lapse, and
 * rates and holds end by decree. After every step the invariants hold, those of lanes among them.
 */
export class LaneWalk {
  readonly log: string[] = [];
  readonly walk: Walk;
  /** What a walk has met; a walk that meets too little shows too little. */
  readonly met = { full: 0, duplicates: 0, parked: 0, atCap: 0, held: 0, forgotten: 0 };
  private readonly ids = new Ids();
  private readonly cap: number | undefined;
  private known = new Set<string>();

  constructor(
    private readonly queue: Hand,
    private readonly random: Random,
    { cap }: LaneWalkOptions = {},
  ) {
    this.cap = cap;
    const holds = ['lane:60000', 'queue:60000'];
    this.walk = new Walk(queue, random, this.ids, this.log, 20, () => this.landing(), holds);
  }

  async begin(): Promise<void> {
    if (this.cap !== undefined) await this.walk.run('lane', ['all', '', 'cap', this.cap]);
    await this.walk.look();
  }

  async step(): Promise<void> {
    if (this.random.chance(0.75)) await this.walk.act();
    else await this.random.pick(this.choices)();
    await this.walk.look();
    this.look();
  }

  /** Ends everything there is: no job may be left behind in a lane that nobody serves, and nothing is kept of the lanes. */
  async finish(): Promise<void> {
    const { walk } = this;
    for (const name of [...this.names(), ...LANES])
      await walk.run('lane', ['lane', name, ...backTo('cap', 'paused', 'interval')]);
    await walk.run('limit', backTo('concurrency', 'interval', 'burst', 'until'));
    for (const group of ['g', 'h', 'none']) await walk.run('lane', ['group', group, ...backTo('paused', 'weight')]);
    await walk.run('resume', []);
    for (let round = 0; round < 300 && walk.view.places.size > 0; round++) {
      await this.decree();
      for (const set of ['schedule', 'active'] as const)
        for (const jobId of walk.standing(set)) await this.queue.client.zadd(this.queue.keys[set], 'XX', 1, jobId);
      await walk.run('promote', [1000]);
      await walk.reap();
      const dead = walk.standing('dead');
      if (dead.length > 0) await walk.run('reprocess', [0, ...dead]);
      await walk.claim(50);
      await walk.look();
      if (walk.open().length > 0) await walk.complete(walk.open());
      await walk.look();
      const cancelled = [...walk.view.rows].flatMap(([jobId, row]) => (row.cancel ? [jobId] : []));
      for (const jobId of cancelled) await this.queue.client.hdel(this.queue.keys.row(jobId), 'cancel');
    }
    expect([...walk.view.places.keys()]).toEqual([]);
    const settings = backTo('weight', 'cap', 'interval', 'burst', 'max_waiting', 'paused');
    for (const name of this.names()) await walk.run('lane', ['lane', name, ...settings]);
    await this.decree();
    await walk.run('lane', []);
    await walk.look();
    const left = Object.keys(walk.view.dump).filter((key) => /^lane(state|group|groupstate|idle)?:/.test(key));
    expect(left.filter((key) => key !== 'lanestate:' && !walk.view.dump[key]!.expires)).toEqual([]);
  }

  private look(): void {
    const { dump, rows } = this.walk.view;
    if (this.cap !== undefined) {
      const running = new Map<string, number>();
      for (const { state, lane } of rows.values()) {
        if (state === 'active' && lane !== undefined) running.set(lane, (running.get(lane) ?? 0) + 1);
      }
      const most = Math.max(0, ...running.values());
      expect(most).toBeLessThanOrEqual(this.cap);
      if (most === this.cap) this.met.atCap++;
    }
    const parked = dump['lanes:parked'];
    if (parked && 'zset' in parked) {
      if (parked.zset.some(([name]) => !name.startsWith(HELD))) this.met.parked++;
      if (parked.zset.some(([name]) => name === HELD)) this.met.held++;
    }
    const names = new Set(this.names());
    for (const name of this.known) if (!names.has(name)) this.met.forgotten++;
    this.known = names;
  }

  private readonly choices: readonly (() => Promise<unknown>)[] = [
    () => this.configure(),
    () => this.configureAll(),
    () => this.configureGroup(),
    () => this.limit(),
    () => this.decree(),
    () => this.decree(),
    () => this.walk.run('lane', []),
    () => this.lose(),
    () => this.enqueue(),
    () => this.enqueue(),
    () => this.walk.claim(1 + this.random.below(40)),
  ];

  private async enqueue(): Promise<void> {
    const args: Arg[] = [];
    for (let n = this.random.below(4); n >= 0; n--) {
      const fields = this.landing();
      args.push(this.ids.next(), 'p', '', fields.length / 2, ...fields);
    }
    const answers = (await this.walk.run('enqueue', args)) as unknown[];
    for (const answer of answers) if (answer !== 1) this.met[answer === -3 ? 'full' : 'duplicates']++;
  }

  private landing(): string[] {
    const fields: string[] = [];
    const lane = this.random.chance(0.2) ? `one${this.ids.minted}` : this.random.pick(LANES);
    if (this.random.chance(0.8)) fields.push('lane', lane);
    const mode = this.random.pick(['u', 'u60000', 't60000', 'd60000', 'l']);
    if (this.random.chance(0.2)) fields.push('dedup', `${mode}:${this.random.pick(['k', 'x:y', 'job:{q}'])}`);
    return fields;
  }

  private async configure(): Promise<void> {
    const name = this.random.pick([...LANES, ...LANES, ...this.names()]);
    await this.walk.run('lane', ['lane', name, ...this.settings()]);
  }

  private settings(): string[] {
    const choices: [string, string[]][] = [
      ['weight', ['0.1', '1', '4', '100', '']],
      ['interval', ['10000000', '0.5', '', '-']],
      ['burst', ['1', '3', '']],
      ['max_waiting', ['1', '3', '-', '']],
      ['paused', ['1', '', '', '']],
      ['until', ['']],
      ...(this.cap === undefined ? ([['cap', ['1', '2', '', '-']]] as [string, string[]][]) : []),
    ];
    const [setting, values] = this.random.pick(choices);
    return [setting, this.random.pick(values)];
  }

  /** And, as whoever changes what stands for all must, has every known lane judged anew. */
  private async configureAll(): Promise<void> {
    const settings = this.settings();
    if (settings[0] === 'paused' || settings[0] === 'until') return;
    await this.walk.run('lane', ['all', '', ...settings]);
    for (const name of this.names()) await this.walk.run('lane', ['lane', name]);
  }

  private configureGroup(): Promise<unknown> {
    const settings = this.random.pick([
      ['weight', '7'],
      ['weight', ''],
      ['paused', '1'],
      ['paused', ''],
      ['paused', ''],
    ]);
    return this.walk.run('lane', ['group', this.random.pick(['g', 'h', 'none']), ...settings]);
  }

  private limit(): Promise<unknown> {
    return this.walk.run(
      'limit',
      this.random.pick([
        ['concurrency', '3'],
        ['concurrency', ''],
        ['interval', '10000000', 'burst', '5'],
        ['interval', '', 'burst', ''],
        ['until', ''],
        [],
      ]),
    );
  }

  /** What rates and holds forbid has come to its end. */
  private async decree(): Promise<void> {
    const { client, keys } = this.queue;
    const parked = `${keys.base}lanes:parked`;
    for (const name of await client.zrange(parked, 0, '-1')) {
      const state = name === HELD ? keys.limits : `${keys.base}lanestate:${name}`;
      if (name === HELD || !name.startsWith(HELD)) {
        await client.hdel(state, 'until');
        await client.hset(state, 'tat', String(-HOUR * 10_000));
        await client.zadd(parked, -HOUR * 10_000, name);
        if (name !== HELD) await this.settle(name);
      }
    }
    this.log.push('rates and holds have ended');
  }

  /** So that the time at which it is parked is what its state says. */
  private async settle(name: string): Promise<void> {
    await this.queue.client.hset(`${this.queue.keys.base}lanestate:${name}`, 'tat', '0');
    await this.walk.run('lane', ['lane', name]);
  }

  private async lose(): Promise<void> {
    const lost = ['active', 'schedule'].flatMap((set) => this.walk.standing(set));
    const waiting = [...this.walk.view.places].filter(([, [place]]) => /^(pending$|lane:)/.test(place!.key));
    const ids = [...lost, ...waiting.map(([jobId]) => jobId)].filter((jobId) => this.walk.view.rows.has(jobId));
    if (ids.length > 0) await this.walk.lose(this.random.pick(ids));
  }

  /** Of the lanes that are known, without the groups. */
  private names(): string[] {
    const held = this.walk.view.dump['lanes:waiting'];
    const all = held && 'zset' in held ? held.zset.map(([name]) => name) : [];
    return all.filter((name) => !name.endsWith(HELD) || groupOf(name) !== '');
  }
}

function backTo(...settings: string[]): string[] {
  return settings.flatMap((setting) => [setting, '']);
}
