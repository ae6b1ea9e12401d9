import { expect } from '@jest/globals';
import type { Arg, Reply } from '../../lib/wire/reply.js';
import { InvariantWatch } from '../support/invariants.js';
import { QueueView } from '../support/queue-view.js';
import { type Hand, id, PAST } from './hand.js';
import type { Random } from './random.js';
import { readable } from './state-table.js';

/** The last claim of a job, as its history shows it; the server is not asked. */
interface Claim {
  token: string;
  /** Not settled, not buried, not taken over. */
  open: boolean;
}

/** A claimer without epochs, and two with. */
const EPOCHS = ['', 'f00d.a', 'f00d.b'];

/** Ids in the order they are minted. Walks through several queues share them. */
export class Ids {
  minted = 0;

  next(): string {
    return id(this.minted++);
  }
}

/**
 * Random transitions on one queue, with leases and delays that end by decree. It knows from the history which token may
 * settle, and holds the server to it; the invariants are checked after every step.
 */
export class Walk {
  readonly settled = { right: 0, wrong: 0 };
  /** Jobs whose rows were deleted by hand. */
  readonly ghosts: string[] = [];
  private readonly watch = new InvariantWatch();
  private readonly claims = new Map<string, Claim>();
  private readonly tokens: { id: string; token: string }[] = [];
  view = new QueueView({});

  constructor(
    readonly queue: Hand,
    private readonly random: Random,
    private readonly ids = new Ids(),
    readonly log: string[] = [],
    private readonly crowd = 14,
    /** Flat fields of a job that lands, beside its priority. */
    private readonly landing: () => readonly string[] = () => [],
    /** Delays with which a job is given back, beside times. */
    private readonly heldFor: readonly string[] = [],
  ) {}

  async step(): Promise<void> {
    await this.act();
    await this.look();
  }

  async act(): Promise<void> {
    // A crowd is thinned out, so that jobs live through many steps and a dump stays small.
    if (this.view.rows.size > this.crowd) await this.random.pick([this.steps.remove, this.steps.complete])();
    else await this.random.pick(this.choices)();
  }

  /** Sees what has become of the queue, by a step of its own or by another's. */
  async look(): Promise<void> {
    const dump = await this.queue.dump();
    this.view = new QueueView(dump);
    expect(this.watch.see(dump, { ghosts: this.ghosts })).toEqual([]);
  }

  private readonly steps = {
    enqueue: () => this.enqueue(),
    dispatch: () => this.dispatch(),
    claim: () => this.claim(),
    complete: () => this.complete(),
    retry: () => this.retry(),
    release: () => this.release(),
    wait: () => this.wait(),
    extend: () => this.extend(),
    lapse: () => this.expire('active'),
    due: () => this.expire('schedule'),
    promote: () => this.run('promote', [this.random.pick([1, 1000])]),
    reap: () => this.reap(),
    reprocess: () => this.run('reprocess', [this.random.below(2), ...this.known('dead')]),
    remove: () => this.remove(),
    cancel: () => this.cancel(),
    reschedule: () =>
      this.run(
        'reschedule',
        this.known().flatMap((jobId) => [jobId, this.delay()]),
      ),
    watch: () => this.run('watch', this.known()),
    trim: () => this.run('trim', [this.random.below(3), 2]),
    pause: () => this.run(this.random.chance(0.3) ? 'pause' : 'resume', []),
    pass: () => this.run('pass', ['p1']),
  };

  private readonly choices: readonly (() => Promise<unknown>)[] = [
    ...Object.values(this.steps),
    // more often
    this.steps.enqueue,
    this.steps.claim,
    this.steps.claim,
    this.steps.retry,
    this.steps.lapse,
    this.steps.reap,
    this.steps.reprocess,
  ];

  async run(name: Parameters<Hand['run']>[0], args: readonly Arg[]): Promise<Reply> {
    const answer = await this.queue.run(name, args);
    this.log.push(`${this.queue.queue}: ${name} ${JSON.stringify(args)} -> ${JSON.stringify(readable(answer))}`);
    return answer;
  }

  private async enqueue(): Promise<void> {
    const again = [...this.view.rows.keys()];
    const args: Arg[] = [];
    for (let n = this.random.below(3); n >= 0; n--) {
      const jobId = again.length > 0 && this.random.chance(0.2) ? this.random.pick(again) : this.ids.next();
      const priority = this.random.below(3) - 1;
      const fields = [...(priority === 0 ? [] : ['priority', priority]), ...this.landing()];
      args.push(jobId, 'p', this.delay(), fields.length / 2, ...fields);
    }
    await this.run('enqueue', args);
  }

  private async dispatch(): Promise<void> {
    const epoch = this.random.pick(EPOCHS);
    const again = [...this.view.rows.keys()];
    const jobId = again.length > 0 && this.random.chance(0.2) ? this.random.pick(again) : this.ids.next();
    const answer = await this.run('dispatch', [60_000, epoch, 'p1', this.random.below(2), jobId, 'p']);
    if (answer !== 1) return;
    const token = epoch === '' ? '1' : `1@${epoch}`;
    this.tokens.push({ id: jobId, token });
    this.claims.set(jobId, { token, open: true });
  }

  async claim(count = 1 + this.random.below(3)): Promise<void> {
    const epoch = this.random.pick(EPOCHS);
    const flat = (await this.run('claim', [60_000, count, epoch, 'p1'])) as Buffer[];
    const width = epoch === '' ? 3 : 4;
    for (let i = 0; i < flat.length; i += width) {
      const attempts = String(flat[i + 2]);
      const claimed = { id: String(flat[i]), token: epoch === '' ? attempts : `${attempts}@${epoch}` };
      this.tokens.push(claimed);
      this.claims.set(claimed.id, { token: claimed.token, open: true });
    }
  }

  async complete(items = this.held()): Promise<void> {
    const kept = this.random.chance(0.3) ? 600_000 : 0;
    const before = this.view.rows;
    const answer = await this.run('complete', [
      this.random.pick([0, 1]),
      ...items.flatMap(({ id: jobId, token }) => [jobId, token, kept, 'r']),
    ]);
    const done = new Map([...before].filter(([, row]) => row.state === 'done'));
    (answer as number[]).forEach((code, n) => {
      const { id: jobId, token } = items[n]!;
      const repeat = done.has(jobId) && this.claims.get(jobId)?.token === token;
      if (repeat) expect(code).toBe(1);
      else if (this.judge(items[n]!, code === 1) && (kept > 0 || before.get(jobId)?.awaited)) done.set(jobId, {});
    });
  }

  private async retry(): Promise<void> {
    const items = this.held();
    const cap = this.random.below(4);
    const args = items.flatMap(({ id: jobId, token }) => [jobId, token, this.random.pick([0, 60_000]), cap, 'boom']);
    const answer = (await this.run('retry', [this.random.pick([0, 1]), ...args])) as Reply[];
    for (const [n, code] of answer.entries()) this.judge(items[n]!, Buffer.isBuffer(code));
  }

  private async release(): Promise<void> {
    const items = this.held();
    const held = () => this.heldFor.length > 0 && this.random.chance(0.4);
    const delay = () => (held() ? this.random.pick(this.heldFor) : this.delay());
    const args = items.flatMap(({ id: jobId, token }) => [jobId, token, delay()]);
    const answer = (await this.run('release', args)) as number[];
    for (const [n, code] of answer.entries()) this.judge(items[n]!, code === 1);
  }

  private async wait(): Promise<void> {
    const items = this.held();
    const answer = (await this.run(
      'wait',
      items.flatMap(({ id: jobId, token }) => [jobId, token]),
    )) as number[];
    for (const [n, code] of answer.entries()) this.judge(items[n]!, code === 1);
  }

  /** Holds the server to the history, and closes the claim. Answers whether it was open. */
  private judge({ id: jobId, token }: { id: string; token: string }, accepted: boolean): boolean {
    const right = this.holds({ id: jobId, token });
    expect({ jobId, token, accepted }).toEqual({ jobId, token, accepted: right });
    this.settled[right ? 'right' : 'wrong']++;
    if (right) this.claims.get(jobId)!.open = false;
    return right;
  }

  /** Does this token name the open claim of the job? */
  holds({ id: jobId, token }: { id: string; token: string }): boolean {
    const claim = this.claims.get(jobId);
    return claim?.open === true && claim.token === token;
  }

  /** All open claims. */
  open(): { id: string; token: string }[] {
    return [...this.claims].filter(([, claim]) => claim.open).map(([jobId, { token }]) => ({ id: jobId, token }));
  }

  private async extend(): Promise<void> {
    const items = this.held();
    const args = items.flatMap(({ id: jobId, token }) => [jobId, token]);
    const answer = (await this.run('extend', [60_000, ...args])) as number[];
    answer.forEach((code, n) => {
      const { id: jobId } = items[n]!;
      const right = this.holds(items[n]!);
      expect({ jobId, code, known: code > 0 || code === -2 }).toEqual({ jobId, code, known: right });
      if (code > 0) expect(this.view.rows.get(jobId)?.state).toBe('active');
    });
  }

  private async expire(set: 'active' | 'schedule'): Promise<void> {
    const members = this.standing(set);
    if (members.length === 0) return;
    const jobId = this.random.pick(members);
    await this.queue.client.zadd(this.queue.keys[set], 'XX', PAST, jobId);
    this.log.push(`${set}: the time of ${jobId} is over`);
  }

  /** Who stands in a set. */
  standing(set: string): string[] {
    return [...this.view.places].filter(([, [place]]) => place!.key === set).map(([jobId]) => jobId);
  }

  /** Sweeps of the same server run, and now and then of a later one. */
  async reap(): Promise<void> {
    const run = this.random.chance(0.1) ? 'beef.x' : 'f00d.x';
    await this.run('reap', [this.random.pick([1, 1000]), 2, run, this.random.pick([0, 1])]);
    const { rows } = new QueueView(await this.queue.dump());
    for (const [jobId, claim] of this.claims) {
      const row = rows.get(jobId);
      // Buried, or given back to no one's account because the server was restarted: the claim is over.
      const epoch = claim.token.split('@')[1];
      if (row?.state === 'dead' || (epoch !== undefined && row?.lease_epoch !== epoch)) claim.open = false;
    }
  }

  async remove(ids = this.known(), tree = this.random.below(3)): Promise<void> {
    const answer = (await this.run('remove', [tree, ...ids])) as number[];
    for (const [n, code] of answer.entries()) this.forget(ids[n]!, code === 1);
  }

  private async cancel(): Promise<void> {
    const ids = this.known();
    const answer = (await this.run('cancel', [this.random.below(3), ...ids])) as number[];
    for (const [n, code] of answer.entries()) this.forget(ids[n]!, code === 1);
  }

  /** Somebody deletes a row by hand. */
  async lose(jobId: string): Promise<void> {
    await this.queue.client.del(this.queue.keys.row(jobId));
    this.log.push(`${jobId} is deleted by hand`);
    this.ghosts.push(jobId);
    this.claims.delete(jobId);
  }

  private forget(jobId: string, removed: boolean): void {
    if (removed) this.claims.delete(jobId);
  }

  /** Tokens to settle with: most of them current, some long outgrown, some never given out. */
  held(): { id: string; token: string }[] {
    const current = this.open();
    return Array.from({ length: 1 + this.random.below(3) }, () => {
      if (current.length > 0 && this.random.chance(0.7)) return this.random.pick(current);
      if (this.tokens.length > 0 && this.random.chance(0.7)) return this.random.pick(this.tokens.slice(-30));
      return { id: this.known()[0]!, token: this.random.pick(['0', '99', '1@f00d.c', '2@beef.a', '']) };
    });
  }

  /** Some ids, most of them of jobs that are there; of those in one set, where some are and it is named. */
  private known(set?: string): string[] {
    const members = set === undefined || this.random.chance(0.3) ? [] : this.standing(set);
    const known = members.length > 0 ? members : [...this.view.rows.keys(), id(this.random.below(this.ids.minted + 1))];
    return Array.from({ length: 1 + this.random.below(2) }, () => this.random.pick(known));
  }

  private delay(): string {
    return this.random.pick(['', '', '60000', '90000', `@${PAST}`]);
  }
}
