import { expect } from '@jest/globals';
import type { EchoError } from '../../lib/kernel/errors.js';
import { BEGINNING, isEarlier, type StreamId } from '../../lib/kernel/stream-id.js';
import { Outbox, type OwedEffect } from '../../lib/wire/outbox.js';
import type { Arg } from '../../lib/wire/reply.js';
import { checkOwed } from '../support/family-invariants.js';
import type { QueueView, Row } from '../support/queue-view.js';
import { type Hand, PAST } from './hand.js';
import type { Random } from './random.js';
import { type Node, node, splitChildren, splitTree, treeJob } from './tree.js';
import { Ids, Walk } from './walk.js';

const CROWD = 40;
const LANES = [undefined, 'a', 'b', 'g\u001fa', 'g\u001fb'];
const POLICIES = [undefined, undefined, undefined, undefined, 'ignore', 'ignore', 'continue', 'hold'];

/** What a walk has met; a walk that meets too little shows too little. */
export interface Met {
  landed: number;
  refused: number;
  given: number;
  relayed: number;
  /** Entries with results of several children. */
  together: number;
  again: number;
  gaps: number;
  released: number;
  fell: number;
  fellThrough: number;
  revived: number;
  late: number;
  taken: number;
}

/**
 * Random walks through two queues whose jobs are each other's parents and children, and a relay that does everything a relay
 * may do: late, in parts, again, with a gap. After every step each queue is looked at, and what the two owe each other.
 */
export class FlowWalk {
  readonly log: string[] = [];
  readonly met: Met = {
    landed: 0,
    refused: 0,
    given: 0,
    relayed: 0,
    together: 0,
    again: 0,
    gaps: 0,
    released: 0,
    fell: 0,
    fellThrough: 0,
    revived: 0,
    late: 0,
    taken: 0,
  };
  private readonly ids = new Ids();
  private readonly walks: readonly Walk[];

  constructor(
    queues: readonly Hand[],
    private readonly random: Random,
    /** Most jobs stand in lanes, and some hold a deduplication key. */
    private readonly laned = false,
  ) {
    this.walks = queues.map((queue) => new Walk(queue, random, this.ids, this.log, CROWD, () => this.landing()));
  }

  private landing(): string[] {
    const lane = this.laned ? this.random.pick(LANES) : undefined;
    const key = this.laned && this.random.chance(0.2) ? this.random.pick(['u:k', 'l:k', 'd60000:k']) : undefined;
    return [...(lane === undefined ? [] : ['lane', lane]), ...(key === undefined ? [] : ['dedup', key])];
  }

  async step(): Promise<void> {
    const walk = this.random.pick(this.walks);
    const before = this.walks.map(({ view }) => view);
    if (this.random.chance(0.7)) await walk.act();
    else
      await this.random.pick([this.land, this.give, this.give, this.relay, this.relay, this.relay, this.complete])(
        walk,
      );
    await this.look(before);
  }

  /** Ends everything there is. Whatever has happened: no parent may be left waiting for what does not come. */
  async finish(): Promise<void> {
    for (let round = 0; round < 300; round++) {
      const before = this.walks.map(({ view }) => view);
      if (before.every(({ places }) => places.size === 0) && (await this.nothingOwed())) return;
      for (const walk of this.walks) {
        const { queue, view } = walk;
        await walk.run('resume', []);
        for (const jobId of walk.standing('schedule')) await queue.client.zadd(queue.keys.schedule, 'XX', PAST, jobId);
        await walk.run('promote', [1000]);
        for (const jobId of walk.standing('active')) await queue.client.zadd(queue.keys.active, 'XX', PAST, jobId);
        await walk.reap();
        const dead = walk.standing('dead');
        if (dead.length > 0) await walk.run('reprocess', [0, ...dead]);
        const marked = [...view.rows].filter(([, row]) => row.removing !== undefined).map(([jobId]) => jobId);
        if (marked.length > 0) await walk.remove(marked, 1);
        await walk.claim(500);
        const open = walk.open();
        if (open.length > 0) await walk.complete(open);
        await walk.look(); // an id whose job has ended may land again with what is carried
        await this.carry(walk, 0, 1_000);
        await walk.look();
      }
      await this.look(before);
    }
    const left = this.walks.flatMap(({ view }) => [...view.rows].filter(([jobId]) => view.places.has(jobId)));
    throw new Error(`not at an end: ${JSON.stringify(left)}`);
  }

  private async look(before: readonly QueueView[]): Promise<void> {
    for (const walk of this.walks) await walk.look();
    expect(checkOwed(Object.fromEntries(this.walks.map(({ queue, view }) => [queue.queue, view.dump])))).toEqual([]);
    for (const [n, { view }] of this.walks.entries()) this.compare(before[n]!, view);
  }

  private compare(before: QueueView, after: QueueView): void {
    const fallen = (row: Row | undefined) => row?.state === 'dead' && row.died_of === 'children';
    for (const [jobId, row] of after.rows) {
      const was = before.rows.get(jobId);
      if (was === undefined) continue;
      if (was.state === 'awaiting_children' && row.state === 'pending') this.met.released++;
      if (!fallen(was) && fallen(row)) {
        this.met.fell++;
        if (row.last_error?.split('child ').length === 3) this.met.fellThrough++;
      }
      if (fallen(was) && row.state !== 'dead') this.met.revived++;
    }
    for (const [jobId, { processed, unsuccessful, failed }] of after.families) {
      const was = before.families.get(jobId);
      this.met.late += Object.keys(was?.unsuccessful ?? {}).filter((child) => child in processed).length;
      const lost = Object.entries({ ...unsuccessful, ...failed }).filter(([, error]) => error.startsWith('the id'));
      this.met.taken += lost.filter(([child]) => !(child in { ...was?.unsuccessful, ...was?.failed })).length;
    }
  }

  private readonly land = async ({ queue }: Walk): Promise<void> => {
    const root = treeJob(this.node(queue.queue, 3, []));
    await this.landed(queue, ['', '', ...splitTree(root, () => this.random.chance(0.7))], 'landed');
  };

  /** More children for whoever holds a claim, or thinks so. */
  private readonly give = async (walk: Walk): Promise<void> => {
    const { queue } = walk;
    const { id: parent, token } = this.random.pick(walk.held());
    const right = walk.holds({ id: parent, token });
    const known = walk.view.families.get(parent)?.children.map((member) => member.slice(-14)) ?? [];
    const strangers = this.taken().filter((jobId) => !known.includes(jobId));
    const nodes = this.siblings(1 + this.random.below(2), () => this.otherOrSame(queue.queue), 1, strangers);
    const jobs = nodes.map((child) => treeJob(child, { queue: queue.queue, id: parent }));
    const args = [parent, token, ...splitChildren(queue.queue, jobs, () => this.random.chance(0.7))];
    const answer = await this.landed(queue, args, 'given');
    // An id that is taken, or stands twice, is refused to whoever asks.
    if (answer !== 'EMQSTATE')
      expect({ parent, token, answer, right }).toEqual({ parent, token, answer, right: answer === 1 });
    // Sent again because its answer was lost.
    if (answer === 1 && this.random.chance(0.5)) expect(await this.landed(queue, args, 'given')).toBe(1);
  };

  private async landed(queue: Hand, args: readonly Arg[], as: 'landed' | 'given'): Promise<unknown> {
    const answer = await queue.run('land', args).catch((error: EchoError) => error.code);
    const shown = args.map((arg) => (Buffer.isBuffer(arg) ? arg.toString('latin1') : arg));
    this.log.push(`${queue.queue}: land ${JSON.stringify(shown)} -> ${answer}`);
    if (answer === 1) this.met[as]++;
    if (answer === 'EMQSTATE') this.met.refused++;
    return answer;
  }

  /** A tree whose ids are new, but for a few that are taken; none of those twice under one parent, which no client does. */
  private node(queue: string, depth: number, strangers: readonly string[]): Node {
    const taken = strangers.length > 0 && this.random.chance(0.1);
    const jobId = taken ? this.random.pick(strangers) : this.ids.next();
    const children = depth === 0 || this.random.chance(0.4) ? 0 : 1 + this.random.below(3);
    const options = {
      queue,
      policy: this.random.pick(POLICIES),
      ...(this.laned ? { lane: this.random.pick(LANES) } : {}),
      fresh: !taken && jobId.charCodeAt(13) % 2 === 0,
      ...(this.random.chance(0.2) ? { priority: this.random.below(3) - 1 } : {}),
      ...(children === 0 && this.random.chance(0.2) ? { delay: '60000' } : {}),
    };
    const most = this.otherOrSame(queue);
    const where = () => (this.random.chance(0.5) ? most : this.otherOrSame(queue));
    return node(jobId, options, this.siblings(children, where, depth - 1, this.taken()));
  }

  private siblings(n: number, queue: () => string, depth: number, strangers: readonly string[]): Node[] {
    const nodes: Node[] = [];
    for (let k = 0; k < n; k++) {
      const others = strangers.filter((jobId) => nodes.every((sibling) => sibling.id !== jobId));
      nodes.push(this.node(queue(), depth, others));
    }
    return nodes;
  }

  private taken(): string[] {
    return this.walks.flatMap(({ view }) => [...view.rows.keys()]);
  }

  private otherOrSame(queue: string): string {
    return this.random.chance(0.6) ? queue : this.random.pick(this.walks).queue.queue;
  }

  /** All that can be, in one call: siblings among them. */
  private readonly complete = async (walk: Walk): Promise<void> => {
    await walk.claim(10);
    const open = walk.open();
    if (open.length > 0) await walk.complete(open);
  };

  private readonly relay = async (walk: Walk): Promise<void> => {
    await this.carry(walk, this.random.pick([0, 0, 0, 3]), 1 + this.random.below(4));
    if (this.random.chance(0.2)) await this.secondLook(walk);
  };

  /** Entries to each target: from up to `back` before the first that is not applied, `some` on from it. */
  private async carry({ queue }: Walk, back: number, some: number): Promise<void> {
    const effects = await new Outbox(queue.executor.connection, queue.keys).read(BEGINNING, 1_000);
    for (const target of this.walks) {
      const owed = effects.filter((effect) => effect.target === target.queue.queue);
      const position = await this.position(queue, target.queue);
      const first = owed.findIndex(({ id }) => isEarlier(position, id));
      const due = first < 0 ? owed.length : first;
      if (owed.length === 0) continue;
      const from = Math.max(0, due - back);
      if (from < due) this.met.again++;
      const call = owed.slice(from, due + some);
      const last = call.at(-1)?.id ?? position;
      const answer = await this.apply(queue, target.queue, from === 0 ? BEGINNING : owed[from - 1]!.id, call);
      expect(answer).toBe(isEarlier(position, last) ? last : position);
      this.met.together += call.filter(({ kind }) => kind === 'results').length;
      this.met.relayed += Math.max(0, call.length - (due - from));
      // One that comes too early, as after a failover of the target.
      const after = owed.slice(due + some);
      if (after.length >= 2) {
        this.met.gaps++;
        expect(await this.apply(queue, target.queue, after[0]!.id, after.slice(1))).toBe(answer);
      }
    }
  }

  private async apply(source: Hand, target: Hand, previous: StreamId, effects: readonly OwedEffect[]): Promise<string> {
    const args = effects.flatMap(({ id, kind, values }): Arg[] => [id, kind, ...values]);
    const answer = String(await target.run('apply', [source.queue, previous, ...args]));
    const shown = effects.map(
      ({ id, kind, values }) => `${id} ${kind} ${values.map((value) => value.toString('latin1'))}`,
    );
    this.log.push(`${target.queue}: apply ${source.queue} after ${previous}: ${JSON.stringify(shown)} -> ${answer}`);
    return answer;
  }

  /** Entries that are applied may be dropped. */
  private async secondLook({ queue }: Walk): Promise<void> {
    const outbox = new Outbox(queue.executor.connection, queue.keys);
    const effects = await outbox.read(BEGINNING, 1_000);
    for (const target of this.walks) {
      const position = await this.position(queue, target.queue);
      const applied = effects.filter(({ id, target: to }) => to === target.queue.queue && !isEarlier(position, id));
      await outbox.drop(applied.map(({ id }) => id));
    }
  }

  private async position(source: Hand, target: Hand): Promise<StreamId> {
    return (await target.client.hget(target.keys.relayed, source.queue)) ?? BEGINNING;
  }

  private async nothingOwed(): Promise<boolean> {
    for (const { queue } of this.walks) {
      const effects = await new Outbox(queue.executor.connection, queue.keys).read(BEGINNING, 1_000);
      for (const { id, target } of effects) {
        const to = this.walks.find((walk) => walk.queue.queue === target)!;
        if (isEarlier(await this.position(queue, to.queue), id)) return false;
      }
    }
    return true;
  }
}
