import { assertInteger, assertKnownKeys } from '../kernel/arguments.js';
import type { Clock } from '../kernel/clock.js';
import type { Complete } from '../kernel/complete.js';
import { type EchoError, EchoTimeoutError } from '../kernel/errors.js';
import { isJobId, readId } from '../kernel/id.js';
import type { Keyspace, QueueKeys } from '../kernel/keyspace.js';
import type { Connection } from '../wire/connection.js';
import type { Executor } from '../wire/executor.js';
import { asEchoError } from '../wire/faults.js';
import { health, type QueueStanding } from '../wire/transitions/index.js';
import type { Metronome } from './metronome.js';

/** Limits are in milliseconds; `Infinity` is none. */
export interface HealthOptions {
  /** Time for the server's answer. Default 1 s. */
  timeoutMs?: number | undefined;
  /** How far promoting and reaping may be behind. Default 15 s: leadership of a dead process is taken over within 13 s. */
  maxLateMs?: number | undefined;
  /** How long a claim may be due while a job is pending and a slot free, or a beat while nobody leads. Default 10 s. */
  stuckAfterMs?: number | undefined;
  /** How long the next job may have waited, counted from its minting. Default: as long as it takes. */
  maxWaitingMs?: number | undefined;
}

/** A queue that this process consumes. Of a queue that the server tells nothing about, only `ok` and `reasons` are there. */
export interface QueueHealth {
  ok: boolean;
  /** Why it is not ok, in sentences; empty when it is. */
  reasons: string[];
  /** Some process leads the queue. False for a moment when leadership passes on; only a silent beat makes it a reason. */
  leader?: boolean;
  pending?: number;
  /** Nothing is claimed here: the queue is paused for everybody, or its consumer in this process. */
  paused?: boolean;
  /** Age of the next job to be claimed, from its minting: delays and retries count. Undefined when nothing is pending. */
  waitingMs?: number | undefined;
  /** How long the earliest run-at or lease deadline is over; 0 when nothing is due. */
  lateMs?: number;
  /** A job is pending, a slot is free, nothing is paused, and no claim of this process has been answered for too long. */
  stuck?: boolean;
}

export interface EchoMqHealth {
  /** The server answers, and all queues are ok. */
  ok: boolean;
  /** Time until the server answered. */
  pingMs?: number;
  /** Why the server did not answer. Holds no credentials. */
  error?: string;
  /** The queues that this process consumes. */
  queues: Record<string, QueueHealth>;
}

/** A consumer, as far as its health goes. Times are those of the monotonic clock. */
export interface Checked {
  readonly keys: QueueKeys;
  readonly isPaused: boolean;
  readonly hasFreeSlot: boolean;
  readonly claimOwedSince: number | undefined;
}

export interface HealthParts {
  connection: Connection;
  executor: Executor;
  keyspace: Keyspace;
  metronome: Metronome;
  clock: Clock;
  consumers(): Iterable<Checked>;
  beatOwedSince(queue: string): number | undefined;
}

type Limits = Complete<HealthOptions>;

const DEFAULTS: Limits = {
  timeoutMs: 1000,
  maxLateMs: 15_000,
  stuckAfterMs: 10_000,
  maxWaitingMs: Number.POSITIVE_INFINITY,
};
const KNOWN = new Set(Object.keys(DEFAULTS));
/** An error of a connector that is not ours could quote a URL. */
const CREDENTIALS = /\/\/\S*@/g;

/**
 * Looks at the server and at what this process makes of its queues, when asked and only then. What a fault is counted
 * from is what claims and beat note anyway, so that one look tells how long it has lasted.
 */
export class HealthCheck {
  /** An outage is told by the ping; what was due over it is counted from its end. */
  private upSince = Number.NEGATIVE_INFINITY;

  constructor(private readonly parts: HealthParts) {
    const up = () => {
      this.upSince = parts.clock.monotonic();
    };
    parts.connection.listen({ up, down: () => undefined });
  }

  async look(options: HealthOptions): Promise<EchoMqHealth> {
    const limits = limitsOf(options);
    const { connection, executor, keyspace, metronome, clock } = this.parts;
    const { timeoutMs } = limits;
    const sentAt = clock.monotonic();
    const { ping, looks } = connection.inOneWrite(() => ({
      // Not PING: in a cluster that would go to any node. This one holds the prefix's node numbers, which producers need.
      ping: answerOf(connection.call('EXISTS', [keyspace.version], { resend: true, timeoutMs }), clock),
      looks: [...this.parts.consumers()].map((consumer) => ({
        consumer,
        answer: answerOf(executor.run(health, consumer.keys, undefined, timeoutMs), clock),
      })),
    }));
    await ping.settled;
    // A queue's first call in a cluster asks for more before, and for that has no limit of its own.
    const left = Math.max(0, timeoutMs - (clock.monotonic() - sentAt));
    await metronome.within(left, Promise.all(looks.map(({ answer }) => answer.settled)));

    const judged = looks.map(({ consumer, answer }): [string, QueueHealth] => {
      const { queue } = consumer.keys;
      if (answer.value) return [queue, this.judge(consumer, answer.value, limits)];
      const fault = answer.fault ?? ping.fault ?? new EchoTimeoutError(`gave up after ${timeoutMs} ms`);
      return [queue, { ok: false, reasons: [textOf(fault)] }];
    });
    const queues = Object.fromEntries(judged);
    const ok = ping.fault === undefined && Object.values(queues).every((queue) => queue.ok);
    if (ping.fault) return { ok, error: textOf(ping.fault), queues };
    return { ok, pingMs: Math.round((ping.at - sentAt) * 10) / 10, queues };
  }

  private judge(consumer: Checked, standing: QueueStanding, limits: Limits): QueueHealth {
    const { led: leader, pending, head, now } = standing;
    const paused = standing.paused || consumer.isPaused;
    const waitingMs = isJobId(head) ? Math.max(0, now - readId(head).mintedAt.getTime()) : undefined;
    const due = Math.min(standing.nextRunAt ?? now, standing.nextDeadline ?? now);
    const lateMs = Math.max(0, now - due);
    const claimOwedMs = this.lasting(consumer.claimOwedSince);
    const beatOwedMs = this.lasting(this.parts.beatOwedSince(consumer.keys.queue));
    const stuck = !paused && pending > 0 && consumer.hasFreeSlot && claimOwedMs > limits.stuckAfterMs;

    const reasons: string[] = [];
    if (lateMs > limits.maxLateMs) {
      reasons.push(
        `jobs that are due are not promoted or reaped: late by ${lateMs} ms, allowed are ${limits.maxLateMs}`,
      );
    }
    if (!paused && waitingMs !== undefined && waitingMs > limits.maxWaitingMs) {
      reasons.push(`the next job has waited ${waitingMs} ms, allowed are ${limits.maxWaitingMs}`);
    }
    if (stuck) {
      reasons.push(`jobs are pending (${pending}) and slots free, but no claim was answered for ${claimOwedMs} ms`);
    }
    if (!leader && beatOwedMs > limits.stuckAfterMs) {
      reasons.push(`nobody leads it, and no beat of this process was answered for ${beatOwedMs} ms`);
    }
    return { ok: reasons.length === 0, reasons, leader, pending, paused, waitingMs, lateMs, stuck };
  }

  private lasting(since: number | undefined): number {
    return since === undefined ? 0 : Math.round(this.parts.clock.monotonic() - Math.max(since, this.upSince));
  }
}

interface Answer<T> {
  /** Resolves, whatever came. */
  settled: Promise<void>;
  value?: T;
  fault?: EchoError;
  at: number;
}

function answerOf<T>(call: Promise<T>, clock: Clock): Answer<T> {
  const awaited: Answer<T> = { settled: Promise.resolve(), at: 0 };
  awaited.settled = call.then(
    (value) => {
      awaited.value = value;
      awaited.at = clock.monotonic();
    },
    (error) => {
      awaited.fault = asEchoError(error);
    },
  );
  return awaited;
}

/** @throws EchoArgumentError naming the option */
function limitsOf(options: HealthOptions): Limits {
  assertKnownKeys(options, KNOWN, 'health options');
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const limits: Limits = { ...DEFAULTS, ...given };
  assertInteger(limits.timeoutMs, 'timeoutMs', 1);
  for (const name of ['maxLateMs', 'stuckAfterMs', 'maxWaitingMs'] as const) {
    if (limits[name] !== Number.POSITIVE_INFINITY) assertInteger(limits[name], name, 0);
  }
  return limits;
}

function textOf({ code, message }: EchoError): string {
  return `${code}: ${message}`.replace(CREDENTIALS, '//***@');
}
