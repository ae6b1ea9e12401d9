import { assertInteger, assertKnownKeys, show } from '../kernel/arguments.js';
import { EchoArgumentError } from '../kernel/errors.js';
import { assertJobId } from '../kernel/id.js';
import type { QueueKeys } from '../kernel/keyspace.js';
import type { ExtendOutcome, Outcome, RetryOutcome } from '../kernel/outcome.js';
import type { Queue } from '../kernel/queue.js';
import * as wire from '../wire/transitions/index.js';
import { encodedProgress, encodedResult } from './encoding.js';
import { delayText } from './enqueue-options.js';
import { failureText } from './failure-text.js';
import { envelopeOf } from './job-view.js';
import { type ClaimedJob, KNOWN } from './jobs-calls.js';
import { JobsLooking } from './jobs-looking.js';

/** For people who run their own loop: to claim jobs, and to settle what was claimed. */
export abstract class JobsHeld extends JobsLooking {
  /**
   * Takes up to `count` jobs (1 to 500, default 1) for `leaseMs`; an empty array when nothing is claimable. Of large jobs fewer come
   * at a time: up to seven, and more only while their payloads are less than 4 MB together.
   */
  async claim(queue: string | Queue, options: { leaseMs: number; count?: number | undefined }): Promise<ClaimedJob[]> {
    const keys = this.keys(queue);
    assertKnownKeys(options, KNOWN.claim, 'claim options');
    const { leaseMs, count = 1 } = options;
    assertInteger(leaseMs, 'leaseMs', 1);
    assertInteger(count, 'count', 1, 500);
    const epoch = this.parts.epoch(keys);
    const rows = await this.run(wire.claim, keys, { leaseMs, count, epoch, process: '' });
    return rows.map(({ id, payload, attempts, token }) => {
      const envelope = envelopeOf(payload, this.parts.codec);
      return { id, name: envelope?.name ?? '', data: envelope ? envelope.data : payload, payload, attempts, token };
    });
  }

  /** The claim's holder is done. With `keepMs` the row stays that long as `done`, with its result. */
  async complete(
    queue: string | Queue,
    id: string,
    token: string,
    options: { result?: unknown; keepMs?: number | undefined } = {},
  ): Promise<Outcome> {
    const keys = this.claimed(queue, id, token);
    assertKnownKeys(options, KNOWN.complete, 'complete options');
    const { keepMs = 0 } = options;
    assertInteger(keepMs, 'keepMs', 0);
    const result = encodedResult(options.result, this.parts.codec, this.parts.maxPayloadBytes);
    const { answer, resent } = await this.settle(wire.complete, keys, {
      record: 0,
      items: [{ id, token, keepMs, result }],
    });
    return resent && isLost(answer) ? 'ok' : answer;
  }

  /** The attempt failed. At `maxAttempts` charged attempts the job is buried; 0 buries it at once. */
  async retry(
    queue: string | Queue,
    id: string,
    token: string,
    options: { maxAttempts: number; delayMs?: number | undefined | undefined; error?: unknown },
  ): Promise<RetryOutcome> {
    const keys = this.claimed(queue, id, token);
    assertKnownKeys(options, KNOWN.retry, 'retry options');
    const { maxAttempts, delayMs = 0 } = options;
    assertInteger(maxAttempts, 'maxAttempts', 0);
    assertInteger(delayMs, 'delayMs', 0);
    const error = options.error === undefined ? '' : failureText(options.error);
    const { answer, resent } = await this.settle(wire.retry, keys, {
      record: 0,
      items: [{ id, token, delayMs, maxAttempts, error }],
    });
    if (!resent || !isLost(answer)) return answer;
    const state = (await this.get(queue, id))?.state;
    return state === 'scheduled' || state === 'dead' ? state : 'pending'; // or it has gone on from there
  }

  /** Gives a job back unfinished; the attempt is not charged. */
  async release(
    queue: string | Queue,
    id: string,
    token: string,
    options: { delayMs?: number | undefined } = {},
  ): Promise<Outcome> {
    const keys = this.claimed(queue, id, token);
    assertKnownKeys(options, KNOWN.release, 'release options');
    const delay = delayText(options.delayMs ?? 0, 'delayMs');
    const { answer, resent } = await this.settle(wire.release, keys, [{ id, token, delay }]);
    return resent && isLost(answer) ? 'ok' : answer;
  }

  /** Renews the lease: it then ends `leaseMs` from the server's now. `cancelled` means renewed, but asked to stop. */
  async extend(queue: string | Queue, id: string, token: string, options: { leaseMs: number }): Promise<ExtendOutcome> {
    const keys = this.claimed(queue, id, token);
    assertKnownKeys(options, KNOWN.extend, 'extend options');
    assertInteger(options.leaseMs, 'leaseMs', 1);
    const [outcome] = await this.run(wire.extend, keys, { leaseMs: options.leaseMs, items: [{ id, token }] });
    return outcome!;
  }

  /** Says how far the work is: any value that could be a result. The row keeps the latest. Sent at once, every time. */
  async progress(queue: string | Queue, id: string, token: string, value: unknown): Promise<Outcome> {
    const keys = this.claimed(queue, id, token);
    const bytes = encodedProgress(value, this.parts.codec, this.parts.maxPayloadBytes);
    const [outcome] = await this.run(wire.progress, keys, [{ id, token, value: bytes }]);
    return outcome!;
  }

  private claimed(queue: string | Queue, id: string, token: string): QueueKeys {
    assertJobId(id);
    if (typeof token !== 'string' || token === '') {
      throw new EchoArgumentError(`token must be the one that claim answered, got ${show(token)}`);
    }
    return this.keys(queue);
  }
}

function isLost(answer: Outcome | RetryOutcome): boolean {
  return answer === 'gone' || answer === 'stale';
}
