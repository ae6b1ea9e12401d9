import type { Timer } from '../kernel/clock.js';
import type { EchoError } from '../kernel/errors.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import { lead, QUEUES_PER_BEAT, resign, type Standing } from '../wire/beat.js';
import type { Executor } from '../wire/executor.js';
import { asEchoError } from '../wire/faults.js';
import { promote, reap, unpark } from '../wire/transitions/index.js';
import type { Flows } from './flows.js';
import type { Metronome } from './metronome.js';
import { recordArg } from './recording.js';
import type { SlotFiring } from './slot-firing.js';

/** A queue this process serves, as the beat sees it. */
export interface Led {
  readonly keys: QueueKeys;
  readonly settings: { readonly maxStalls: number; readonly record: boolean | number };
  claimable(): void;
  /** Jobs that a step has buried without their handlers' word. */
  buried(ids: readonly string[]): void;
  /** Sends, and if the queue's consumer is idle here, has it claim right behind. */
  behind<T>(send: () => T): T;
}

interface Duty {
  queue: Led;
  leads: boolean;
  /** A beat is under way ... */
  asked: boolean;
  /** ... and another is to follow. */
  again: boolean;
  /** Since when the answer to a beat has been due, on our monotonic clock; undefined when the last one was answered. */
  owedSince: number | undefined;
  /** New earliest times that were heard of while it was not known who leads, on our monotonic clock. */
  heard: Partial<Record<Earliest, number>>;
  promoting: Alarm;
  reaping: Alarm;
  firing: Alarm;
  unparking: Alarm;
}

/** What a new earliest time is one of: a run-at of a job, a slot of a repeating schedule, the end of a lane's wait for its rate. */
export type Earliest = 'run' | 'slot' | 'park';

export interface BeatHost {
  readonly executor: Executor;
  readonly metronome: Metronome;
  /** Relays what the queues owe that this process leads. */
  readonly flows: Pick<Flows, 'owes'>;
  /** Lands the jobs of repeating schedules. */
  readonly slots: Pick<SlotFiring, 'fire'>;
  readonly process: string;
  readonly isUp: boolean;
  epoch(keys: QueueKeys): string | undefined;
  fault(error: EchoError): void;
}

export const BEAT_MS = 3000;
const LEADERSHIP_MS = 10_000;
const PER_CALL = 1000;
const PAUSE_AFTER_FAULT_MS = 250;

/** One moment to act at; setting it again moves it, and only an earlier one counts. */
class Alarm {
  private timer: Timer | undefined;
  private due = Number.POSITIVE_INFINITY;
  private acting = false;
  private again: number | undefined;

  constructor(
    private readonly metronome: Metronome,
    private readonly now: () => number,
    private readonly act: () => Promise<number | undefined>,
  ) {}

  /** Act in so many milliseconds, or earlier if that was set already. */
  within(ms: number): void {
    if (this.acting) {
      this.again = Math.min(this.again ?? ms, ms); // what came while acting may not be in the answer
      return;
    }
    const due = this.now() + ms;
    if (due >= this.due) return;
    this.timer?.cancel();
    this.due = due;
    this.timer = this.metronome.after(ms, () => this.ring());
  }

  clear(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.due = Number.POSITIVE_INFINITY;
    this.again = undefined;
  }

  private async ring(): Promise<void> {
    this.clear();
    this.acting = true;
    const next = await this.act().finally(() => {
      this.acting = false;
    });
    const { again } = this;
    this.again = undefined;
    const soonest = Math.min(next ?? Number.POSITIVE_INFINITY, again ?? Number.POSITIVE_INFINITY);
    if (soonest !== Number.POSITIVE_INFINITY) this.within(soonest);
  }
}

/**
 * The pulse of a process: one `lead` call for all its queues takes or renews their leadership and says when each wants
 * attention. What the leader then does (promote, reap, fire slots) is set to the exact time, and is safe when two believe they lead.
 */
export class Beat {
  private readonly duties = new Map<string, Duty>();
  private timer: Timer | undefined;

  constructor(
    private readonly host: BeatHost,
    private readonly cluster: boolean,
    private readonly now: () => number,
  ) {}

  add(queue: Led): void {
    const duty: Duty = {
      queue,
      leads: false,
      asked: false,
      again: false,
      owedSince: this.now(),
      heard: {},
      promoting: new Alarm(this.host.metronome, this.now, () => this.promote(duty)),
      reaping: new Alarm(this.host.metronome, this.now, () => this.reap(duty)),
      firing: new Alarm(this.host.metronome, this.now, () => this.fire(duty)),
      unparking: new Alarm(this.host.metronome, this.now, () => this.unpark(duty)),
    };
    this.duties.set(queue.keys.queue, duty);
  }

  async remove(queue: Led): Promise<void> {
    const duty = this.duties.get(queue.keys.queue);
    if (duty === undefined) return;
    this.duties.delete(queue.keys.queue);
    this.stand(duty, undefined);
    if (this.duties.size === 0) this.stop();
    if (this.host.isUp) await resign(this.host.executor, [queue.keys], this.host.process);
  }

  /** Beats at once, and from then on every {@link BEAT_MS}. */
  soon(): void {
    this.timer?.cancel();
    this.timer = this.host.metronome.after(0, () => this.beat());
  }

  /** A new earliest time has come up. */
  sooner(queue: string, what: Earliest, inMs: number): void {
    const duty = this.duties.get(queue);
    if (duty === undefined || !Number.isFinite(inMs)) return;
    if (duty.leads) alarmFor(duty, what).within(inMs);
    else if (duty.asked) {
      duty.heard[what] = Math.min(duty.heard[what] ?? Number.POSITIVE_INFINITY, this.now() + inMs);
    }
  }

  /** A parent has died of its child: of the processes that hear it, the one that leads tells. */
  died(queue: string, id: string): void {
    const duty = this.duties.get(queue);
    if (duty?.leads) duty.queue.buried([id]);
  }

  /** Something is owed to another queue. Whoever comes to lead later is told by its first beat. */
  owes(queue: string): void {
    const duty = this.duties.get(queue);
    if (duty?.leads) this.host.flows.owes(duty.queue.keys);
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
    for (const duty of this.duties.values()) {
      duty.again = false;
      this.stand(duty, undefined);
    }
  }

  /** Queues this process leads. */
  get leading(): string[] {
    return [...this.duties.values()].filter((duty) => duty.leads).map((duty) => duty.queue.keys.queue);
  }

  /** Since when a queue's beat has been due or unanswered; undefined when the last one was answered. */
  owedSince(queue: string): number | undefined {
    return this.duties.get(queue)?.owedSince;
  }

  /** One node of a cluster that does not answer must not keep the queues on the others from being asked for. */
  private beat(): void {
    this.timer = this.host.metronome.after(BEAT_MS, () => this.beat());
    if (!this.host.isUp) return;
    const due: Duty[] = [];
    for (const duty of this.duties.values()) {
      if (duty.asked) duty.again = true;
      else due.push(duty);
    }
    this.ask(due);
  }

  /** In a cluster the leader keys of one call must share a slot, so every queue is asked for by itself. */
  private ask(duties: readonly Duty[]): void {
    const size = this.cluster ? 1 : QUEUES_PER_BEAT;
    for (let i = 0; i < duties.length; i += size) this.lead(duties.slice(i, i + size));
  }

  private async lead(group: readonly Duty[]): Promise<void> {
    const now = this.now();
    for (const duty of group) {
      duty.owedSince ??= now;
      duty.asked = true;
    }
    try {
      const call = { process: this.host.process, ttlMs: LEADERSHIP_MS };
      const standings = await lead(
        this.host.executor,
        group.map((duty) => duty.queue.keys),
        call,
      );
      group.forEach((duty, i) => {
        duty.owedSince = undefined;
        if (this.duties.get(duty.queue.keys.queue) === duty) this.stand(duty, standings[i]);
      });
    } catch (error) {
      this.host.fault(asEchoError(error));
    }
    const more = group.filter((duty) => duty.again && this.duties.get(duty.queue.keys.queue) === duty);
    for (const duty of group) {
      duty.asked = false;
      duty.again = false;
    }
    if (this.host.isUp) this.ask(more);
  }

  private stand(duty: Duty, standing: Standing | undefined): void {
    duty.leads = standing?.leads ?? false;
    if (!duty.leads) {
      duty.promoting.clear();
      duty.reaping.clear();
      duty.firing.clear();
      duty.unparking.clear();
    } else {
      // The answer may be older than what was heard meanwhile: the two come on different connections.
      for (const [what, at] of Object.entries(duty.heard)) {
        alarmFor(duty, what as Earliest).within(Math.max(0, at - this.now()));
      }
    }
    duty.heard = {};
    if (standing?.nextRunInMs !== undefined) duty.promoting.within(standing.nextRunInMs);
    if (standing?.nextDeadlineInMs !== undefined) duty.reaping.within(standing.nextDeadlineInMs);
    if (standing?.nextParkedInMs !== undefined) duty.unparking.within(standing.nextParkedInMs);
    if (standing?.nextSlotInMs !== undefined) duty.firing.within(standing.nextSlotInMs);
    if (standing?.claimable) duty.queue.claimable();
    if (standing?.owes) this.host.flows.owes(duty.queue.keys);
  }

  private promote(duty: Duty): Promise<number | undefined> {
    const { queue } = duty;
    const call = () => this.host.executor.run(promote, queue.keys, { limit: PER_CALL });
    return this.led(duty, async () => (await queue.behind(call)).nextInMs);
  }

  private reap(duty: Duty): Promise<number | undefined> {
    const { keys, settings } = duty.queue;
    return this.led(duty, async () => {
      const epoch = this.host.epoch(keys) ?? '';
      const { maxStalls, record } = settings;
      const call = { limit: PER_CALL, maxStalls, epoch, record: recordArg(record) };
      const { nextInMs, deadIds } = await this.host.executor.run(reap, keys, call);
      if (deadIds.length > 0) duty.queue.buried(deadIds);
      return nextInMs;
    });
  }

  /** Brings back the lanes whose rate lets them give a job again. */
  private unpark(duty: Duty): Promise<number | undefined> {
    const { queue } = duty;
    const call = () => this.host.executor.run(unpark, queue.keys, undefined);
    return this.led(duty, async () => (await queue.behind(call)).nextInMs);
  }

  private fire(duty: Duty): Promise<number | undefined> {
    return this.led(duty, () => this.host.slots.fire(duty.queue, () => duty.leads));
  }

  /** What a leader does, as long as it leads; answers when to do it again, soon after a fault. */
  private async led(duty: Duty, act: () => Promise<number | undefined>): Promise<number | undefined> {
    if (!duty.leads) return undefined;
    try {
      const nextInMs = await act();
      return duty.leads ? nextInMs : undefined;
    } catch (error) {
      this.host.fault(asEchoError(error));
      return PAUSE_AFTER_FAULT_MS;
    }
  }
}

function alarmFor(duty: Duty, what: Earliest): Alarm {
  if (what === 'run') return duty.promoting;
  return what === 'slot' ? duty.firing : duty.unparking;
}
