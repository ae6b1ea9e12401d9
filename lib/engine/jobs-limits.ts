import { assertInteger, assertKnownKeys } from '../kernel/arguments.js';
import { EchoArgumentError } from '../kernel/errors.js';
import type { Queue } from '../kernel/queue.js';
import { type Rate, rateSettings } from '../kernel/rate.js';
import * as wire from '../wire/transitions/index.js';
import { JobsUpkeep } from './jobs-upkeep.js';
import { type StandingRate, standingRate } from './lane-settings.js';

/** What holds back a whole queue, in all processes together. What is left out stays as it is; null takes it back. */
export interface QueueLimitSettings {
  /** Jobs that are claimed and not settled at a time, from 1. */
  concurrency?: number | null | undefined;
  /** Jobs that are claimed in a time. */
  rate?: Rate | null | undefined;
}

/** Undefined where nothing is set. */
export interface QueueLimits {
  concurrency: number | undefined;
  rate: StandingRate | undefined;
  /** Milliseconds for which its rate, or a hold that a handler asked for, keeps the queue back now; 0: they do not. */
  heldForMs: number;
}

const SETTINGS = new Set(['concurrency', 'rate']);

/** To limit whole queues. */
export abstract class JobsLimits extends JobsUpkeep {
  /**
   * Limits the queue, whatever its lanes and its consumers' `concurrency` allow; it holds from the next claim on, and
   * for every process. Lowering it stops nothing that runs. Answers what is set now.
   * @throws EchoArgumentError for a limit that makes no sense
   */
  async limit(queue: string | Queue, settings: QueueLimitSettings): Promise<QueueLimits> {
    const keys = this.keys(queue);
    assertKnownKeys(settings, SETTINGS, 'limit settings');
    const { concurrency, rate } = settings as QueueLimitSettings;
    const flat: string[] = [];
    if (concurrency === null) flat.push('concurrency', '');
    else if (concurrency !== undefined) {
      assertInteger(concurrency, 'concurrency', 1);
      flat.push('concurrency', String(concurrency));
    }
    if (rate !== undefined) flat.push(...rateSettings(rate, 'rate'));
    if (flat.length === 0)
      throw new EchoArgumentError('limit needs a setting: give concurrency or rate, or null for one');
    return limitsOf(await this.run(wire.limit, keys, flat));
  }

  /** What limits the queue, and for how long it is held back. */
  async limits(queue: string | Queue): Promise<QueueLimits> {
    return limitsOf(await this.run(wire.limit, this.keys(queue), []));
  }

  /** Ends a hold of the queue that a handler has asked for by {@link RateLimited}. Its limits stay. */
  async liftHold(queue: string | Queue): Promise<QueueLimits> {
    return limitsOf(await this.run(wire.limit, this.keys(queue), ['until', '']));
  }
}

function limitsOf({ concurrency, intervalMs, burst, heldForMs }: wire.LimitStanding): QueueLimits {
  return { concurrency, rate: standingRate(intervalMs, burst), heldForMs };
}
