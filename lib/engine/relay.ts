import type { Timer } from '../kernel/clock.js';
import { type EchoError, EchoTimeoutError } from '../kernel/errors.js';
import type { Keyspace, QueueKeys } from '../kernel/keyspace.js';
import { BEGINNING, isEarlier, type StreamId } from '../kernel/stream-id.js';
import type { Executor } from '../wire/executor.js';
import { asEchoError } from '../wire/faults.js';
import { Outbox, type OwedEffect } from '../wire/outbox.js';
import { apply } from '../wire/transitions/index.js';
import type { Metronome } from './metronome.js';
import { byTarget, calls, mayOweMore, sizeOf } from './owed-calls.js';

export interface RelayHost {
  readonly executor: Executor;
  readonly keyspace: Keyspace;
  readonly metronome: Metronome;
  /** A queue may owe something in its turn, and perhaps nobody leads it. */
  owes(keys: QueueKeys): void;
  fault(error: EchoError): void;
}

/** More are read at once while they are small: a result may have megabytes. */
const FIRST_READ = 16;
const MOST_PER_READ = 100;
const BYTES_PER_READ = 4_000_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4000;
/** In a cluster the node of one target may be away, and the others must not wait for it. */
const CLUSTER_APPLY_MS = 5000;
/** A target may fail over to a server that has not heard of what it acknowledged: what was sent is kept so long. */
export const SECOND_LOOK_MS = 30_000;

/** The way to one target. */
interface Lane {
  /** The last entry known to be applied there. */
  applied: StreamId;
  /** Applied, and not yet looked at a second time, the oldest first. */
  readonly kept: Map<StreamId, number>;
}

/**
 * Carries what one queue owes to others: in order, each effect applied exactly once, whoever relays and however often. It may
 * stop, or be killed, at any point: another one goes on from what the two queues know.
 */
export class Relay {
  private readonly outbox: Outbox;
  private readonly lanes = new Map<string, Lane>();
  private known = false;
  /** The last entry read. */
  private position: StreamId = BEGINNING;
  /** How often it was sent back to an earlier one. */
  private returns = 0;
  /** Targets that have failed: passed over until it is tried again, from `missed` on. */
  private readonly stuck = new Set<string>();
  private missed: StreamId | undefined;
  private readonly acknowledging: Promise<void>[] = [];
  private perRead = FIRST_READ;
  private running: Promise<void> | undefined;
  private again = false;
  private stopped = false;
  private pauseMs = FIRST_PAUSE_MS;
  private retry: Timer | undefined;
  private sweep: Timer | undefined;

  constructor(
    private readonly host: RelayHost,
    private readonly keys: QueueKeys,
    /** Called when nothing is on its way, nothing failed and nothing is kept. */
    private readonly idle: () => void = () => {},
  ) {
    this.outbox = new Outbox(host.executor.connection, keys);
  }

  /** Something may be owed. */
  kick(): void {
    if (this.stopped) return;
    if (this.running) {
      this.again = true;
      return;
    }
    this.running = this.run()
      .catch((error) => this.failed(error, this.position))
      .finally(() => {
        const { again } = this;
        this.running = undefined;
        this.again = false;
        if (again) this.kick();
        else if (this.retry === undefined && this.sweep === undefined) this.idle();
      });
  }

  /** Resolves when nothing is on its way, with how far it has read; what failed waits to be tried again. */
  async rest(): Promise<StreamId> {
    while (this.running !== undefined) await this.running;
    return this.position;
  }

  /** Relays all that is owed now, and leaves the second look to others. @throws EchoError when some of it is not delivered */
  async flush(): Promise<void> {
    let fault: unknown;
    await this.run((error) => {
      fault ??= error;
    });
    if (fault !== undefined) throw asEchoError(fault);
  }

  stop(): void {
    this.stopped = true;
    this.retry?.cancel();
    this.sweep?.cancel();
  }

  private async run(failed = (error: unknown, from: StreamId) => this.failed(error, from)): Promise<void> {
    for (;;) {
      const { position: from, returns } = this;
      const effects = await this.outbox.read(from, this.perRead);
      await this.acknowledged(failed);
      if (effects.length === 0 || this.stopped) break;
      if (!this.known) await this.learn();
      if (this.returns !== returns) continue; // sent back meanwhile: what was read comes too early
      this.measure(effects);
      const deliveries = [...byTarget(effects)].map(([target, owed]) =>
        this.stuck.has(target)
          ? undefined
          : this.deliver(target, owed).catch((error) => {
              this.stuck.add(target);
              failed(error, from);
            }),
      );
      await Promise.all(deliveries);
      if (this.returns === returns) this.position = effects.at(-1)!.id;
    }
    if (this.stuck.size === 0) this.pauseMs = FIRST_PAUSE_MS;
  }

  private async learn(): Promise<void> {
    for (const [target, id] of await this.outbox.acknowledged()) this.lane(target).applied = id;
    this.known = true;
  }

  private measure(effects: readonly OwedEffect[]): void {
    const bytes = effects.reduce((sum, effect) => sum + sizeOf(effect), 0);
    const fitting = Math.floor((effects.length * BYTES_PER_READ) / Math.max(bytes, 1));
    this.perRead = Math.max(1, Math.min(fitting, 2 * this.perRead, MOST_PER_READ));
  }

  /** Others go on; what failed is tried again after a pause, which grows. */
  private failed(error: unknown, from: StreamId): void {
    if (this.stopped) return;
    this.host.fault(asEchoError(error));
    if (this.missed === undefined || isEarlier(from, this.missed)) this.missed = from;
    if (this.retry !== undefined) return;
    this.retry = this.host.metronome.after(this.pauseMs, () => {
      this.retry = undefined;
      this.stuck.clear();
      if (this.missed !== undefined) this.goBack(this.missed);
      this.missed = undefined;
      this.kick();
    });
    this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
  }

  /** One call at a time to a target: its entries stay in order. */
  private async deliver(target: string, effects: readonly OwedEffect[]): Promise<void> {
    const lane = this.lane(target);
    const due = effects.filter(({ id }) => isEarlier(lane.applied, id));
    let previous = lane.applied;
    for (const call of calls(due)) {
      const last = await this.apply(target, previous, call);
      lane.applied = last;
      if (isEarlier(last, previous)) {
        this.goBack(BEGINNING); // entries that were passed over as applied must be read again
        return;
      }
      previous = last;
    }
    if (due.length > 0) this.acknowledge(target, previous);
    if (due.some(mayOweMore)) this.host.owes(this.host.keyspace.queue(target));
    for (const { id } of effects) if (!lane.kept.has(id)) lane.kept.set(id, this.host.metronome.now());
    this.sweepLater();
  }

  /** Sent together with the next read, whose answer comes behind its own. */
  private acknowledge(target: string, id: StreamId): void {
    const answered = this.outbox.acknowledge(target, id);
    answered.catch(() => undefined); // asked for by acknowledged()
    this.acknowledging.push(answered);
  }

  private async acknowledged(failed: (error: unknown, from: StreamId) => void): Promise<void> {
    for (const answered of this.acknowledging.splice(0)) {
      await answered.catch((error) => failed(error, this.position));
    }
  }

  private apply(target: string, previous: StreamId, effects: readonly OwedEffect[]): Promise<StreamId> {
    const { executor, keyspace, metronome } = this.host;
    const applied = executor.run(apply, keyspace.queue(target), { source: this.keys.queue, previous, effects });
    if (!executor.connection.cluster) return applied;
    return new Promise((resolve, reject) => {
      const late = () =>
        reject(new EchoTimeoutError(`queue '${target}' has not taken what '${this.keys.queue}' owes it`));
      const limit = metronome.after(CLUSTER_APPLY_MS, late);
      applied.then(resolve, reject).finally(() => limit.cancel());
    });
  }

  private sweepLater(): void {
    if (this.sweep !== undefined || this.stopped) return;
    this.sweep = this.host.metronome.after(SECOND_LOOK_MS, () => {
      const looks = [...this.lanes].map(([target, lane]) => this.lookAgain(target, lane));
      Promise.allSettled(looks).then((answers) => {
        this.sweep = undefined;
        for (const answer of answers) {
          if (answer.status === 'rejected' && !this.stopped) this.host.fault(asEchoError(answer.reason));
        }
        if ([...this.lanes.values()].some(({ kept }) => kept.size > 0)) this.sweepLater();
        else if (this.running === undefined && this.retry === undefined) this.idle();
      });
    });
  }

  /** Drops what a second look, long after the first acknowledgement, still finds applied. */
  private async lookAgain(target: string, lane: Lane): Promise<void> {
    const until = this.host.metronome.now() - SECOND_LOOK_MS;
    const old = [...lane.kept].filter(([, since]) => since <= until).map(([id]) => id);
    if (old.length === 0) return;
    const last = await this.apply(target, BEGINNING, []);
    const applied = old.filter((id) => !isEarlier(last, id));
    await this.outbox.drop(applied);
    for (const id of applied) lane.kept.delete(id);
    if (applied.length === old.length) return;
    lane.applied = last;
    this.goBack(BEGINNING);
    this.kick();
  }

  private goBack(to: StreamId): void {
    this.returns += 1;
    if (isEarlier(to, this.position)) this.position = to;
  }

  private lane(target: string): Lane {
    let lane = this.lanes.get(target);
    if (lane === undefined) {
      lane = { applied: BEGINNING, kept: new Map() };
      this.lanes.set(target, lane);
    }
    return lane;
  }
}
