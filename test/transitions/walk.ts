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
const CROWD = 14;

/**
 * Random transitions on one queue, with leases and delays that end by decree. It knows from the history which token may
 * settle, and holds the server to it; the invariants are checked after every step.
 */
export class Walk {
  readonly log: string[] = [];
  readonly settled = { right: 0, wrong: 0 };
  private readonly watch = new InvariantWatch();
  private readonly claims = new Map<string, Claim>();
  private readonly tokens: { id: string; token: string }[] = [];
  private minted = 0;
  private view = new QueueView({});

  constructor(
    private readonly queue: Hand,
    private readonly random: Random,
  ) {}

  async step(): Promise<void> {
    // A crowd is thinned out, so that jobs live through many steps and a dump stays small.
    if (this.view.rows.size > CROWD) await this.remove();
    else await this.random.pick(this.steps)();
    const dump = await this.queue.dump();
    this.view = new QueueView(dump);
    expect(this.watch.see(dump)).toEqual([]);
  }

  private readonly steps: (() => Promise<unknown>)[] = [
    () => this.enqueue(),
    () => this.enqueue(),
    () => this.claim(),
    () => this.claim(),
    () => this.claim(),
    () => this.complete(),
    () => this.retry(),
    () => this.retry(),
    () => this.release(),
    () => this.extend(),
    () => this.expire('active'),
    () => this.expire('active'),
    () => this.expire('schedule'),
    () => this.run('promote', [this.random.pick([1, 1000])]),
    () => this.reap(),
    () => this.reap(),
    () => this.run('reprocess', [this.random.below(2), ...this.ids()]),
    () => this.remove(),
    () => this.cancel(),
    () =>
      this.run(
        'reschedule',
        this.ids().flatMap((jobId) => [jobId, this.delay()]),
      ),
    () => this.run('trim', [this.random.below(3), 2]),
    () => this.run(this.random.chance(0.3) ? 'pause' : 'resume', []),
    () => this.run('pass', ['p1']),
  ];

  private async run(name: Parameters<Hand['run']>[0], args: readonly Arg[]): Promise<Reply> {
    const answer = await this.queue.run(name, args);
    this.log.push(`${name} ${JSON.stringify(args)} -> ${JSON.stringify(readable(answer))}`);
    return answer;
  }

  private async enqueue(): Promise<void> {
    const again = [...this.view.rows.keys()];
    const args: Arg[] = [];
    for (let n = this.random.below(3); n >= 0; n--) {
      const jobId = again.length > 0 && this.random.chance(0.2) ? this.random.pick(again) : id(this.minted++);
      const priority = this.random.below(3) - 1;
      args.push(jobId, 'p', this.delay(), ...(priority === 0 ? [0] : [1, 'priority', priority]));
    }
    await this.run('enqueue', args);
  }

  private async claim(): Promise<void> {
    const epoch = this.random.pick(EPOCHS);
    const flat = (await this.run('claim', [60_000, 1 + this.random.below(3), epoch, 'p1'])) as Buffer[];
    const width = epoch === '' ? 3 : 4;
    for (let i = 0; i < flat.length; i += width) {
      const attempts = String(flat[i + 2]);
      const claimed = { id: String(flat[i]), token: epoch === '' ? attempts : `${attempts}@${epoch}` };
      this.tokens.push(claimed);
      this.claims.set(claimed.id, { token: claimed.token, open: true });
    }
  }

  private async complete(): Promise<void> {
    const items = this.held();
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
      else if (this.judge(items[n]!, code === 1) && kept > 0) done.set(jobId, {});
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
    const args = items.flatMap(({ id: jobId, token }) => [jobId, token, this.delay()]);
    const answer = (await this.run('release', args)) as number[];
    for (const [n, code] of answer.entries()) this.judge(items[n]!, code === 1);
  }

  /** Holds the server to the history, and closes the claim. Answers whether it was open. */
  private judge({ id: jobId, token }: { id: string; token: string }, accepted: boolean): boolean {
    const claim = this.claims.get(jobId);
    const right = claim?.open === true && claim.token === token;
    expect({ jobId, token, accepted }).toEqual({ jobId, token, accepted: right });
    this.settled[right ? 'right' : 'wrong']++;
    if (right) claim.open = false;
    return right;
  }

  private async extend(): Promise<void> {
    const items = this.held();
    const args = items.flatMap(({ id: jobId, token }) => [jobId, token]);
    const answer = (await this.run('extend', [60_000, ...args])) as number[];
    answer.forEach((code, n) => {
      const { id: jobId, token } = items[n]!;
      const claim = this.claims.get(jobId);
      const right = claim?.open === true && claim.token === token;
      expect({ jobId, code, known: code > 0 || code === -2 }).toEqual({ jobId, code, known: right });
      if (code > 0) expect(this.view.rows.get(jobId)?.state).toBe('active');
    });
  }

  private async expire(set: 'active' | 'schedule'): Promise<void> {
    const members = [...this.view.places].filter(([, [place]]) => place!.key === set).map(([jobId]) => jobId);
    if (members.length === 0) return;
    const jobId = this.random.pick(members);
    await this.queue.client.zadd(this.queue.keys[set], 'XX', PAST, jobId);
    this.log.push(`${set}: the time of ${jobId} is over`);
  }

  /** Sweeps of the same server run, and now and then of a later one. */
  private async reap(): Promise<void> {
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

  private async remove(): Promise<void> {
    const ids = this.ids();
    const answer = (await this.run('remove', [0, ...ids])) as number[];
    for (const [n, code] of answer.entries()) this.forget(ids[n]!, code === 1);
  }

  private async cancel(): Promise<void> {
    const ids = this.ids();
    const answer = (await this.run('cancel', [0, ...ids])) as number[];
    for (const [n, code] of answer.entries()) this.forget(ids[n]!, code === 1);
  }

  private forget(jobId: string, removed: boolean): void {
    if (removed) this.claims.delete(jobId);
  }

  /** Tokens to settle with: most of them current, some long outgrown, some never given out. */
  private held(): { id: string; token: string }[] {
    const open = [...this.claims].filter(([, claim]) => claim.open);
    const current = open.map(([jobId, { token }]) => ({ id: jobId, token }));
    return Array.from({ length: 1 + this.random.below(3) }, () => {
      if (current.length > 0 && this.random.chance(0.7)) return this.random.pick(current);
      if (this.tokens.length > 0 && this.random.chance(0.7)) return this.random.pick(this.tokens.slice(-30));
      return { id: this.ids()[0]!, token: this.random.pick(['0', '99', '1@f00d.c', '2@beef.a', '']) };
    });
  }

  private ids(): string[] {
    const known = [...this.view.rows.keys(), id(this.random.below(this.minted + 1))];
    return Array.from({ length: 1 + this.random.below(2) }, () => this.random.pick(known));
  }

  private delay(): string {
    return this.random.pick(['', '', '60000', '90000', `@${PAST}`]);
  }
}
