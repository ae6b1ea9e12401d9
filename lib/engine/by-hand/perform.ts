import type { Codec } from '../../kernel/codec.js';
import { EchoStateError } from '../../kernel/errors.js';
import type { ClaimedRow } from '../../wire/transitions/index.js';
import { Gatherings } from '../batching.js';
import type { ConsumerSettings } from '../consumer-options.js';
import { assertEncoded, encodedProgress, encodedResult } from '../encoding.js';
import type { ChildrenReport } from '../flow-calls.js';
import type { Handler } from '../handler.js';
import { type Job, type JobReach, readJob } from '../job.js';
import type { Metronome } from '../metronome.js';
import { Slots, type SlotsParts } from '../slots.js';

export interface PerformParts {
  readonly metronome: Metronome;
  readonly clock: SlotsParts['clock'];
  readonly codec: Codec;
  readonly maxPayloadBytes: number;
  inScope<T>(act: () => T): T;
}

/** What a test says of a job's children. */
export type GivenChildren = { [Part in keyof ChildrenReport]?: ChildrenReport[Part] | undefined };

/** A job to be performed. */
export interface Performance {
  readonly row: ClaimedRow;
  readonly settings: ConsumerSettings;
  /** What its handler is told of its children. */
  readonly children: GivenChildren | undefined;
}

/** Where the result stands in an envelope that goes through the codec and back. */
const RESULT = 'result';

const CHILDLESS = 'a performed job is not on the server and can be given no children: enqueue it, and drain';

/**
 * Runs a job that the server does not have, as a consumer runs one it has claimed: read by the codec, under its time limit.
 * Resolves with the result as the codec brings it back. @throws what the handler threw
 */
export async function performAlone(
  parts: PerformParts,
  queue: string,
  { row, settings, children }: Performance,
  handler: Handler,
): Promise<unknown> {
  const { metronome, clock, codec, maxPayloadBytes } = parts;
  const batch = {
    owner: parts,
    reach: reachOf(parts, children),
    jobs: [],
    left: 1,
    leasedAt: clock.monotonic(),
    renewing: false,
  };
  const job = readJob(queue, row, codec, batch);
  const value = await new Promise<unknown>((resolve, reject) => {
    const finish = (job: Job, settle: () => void) => {
      if (job.finished) return; // it had timed out
      job.finished = true;
      slots.leave(job);
      settle();
    };
    const slots: Slots = new Slots(
      {
        concurrency: 1,
        leaseMs: Number.POSITIVE_INFINITY,
        timeoutMs: settings.timeoutMs,
        handler,
        claimAhead: false,
        metronome,
        clock,
      },
      {
        mayStart: () => true,
        succeeded: (job, value) => finish(job, () => resolve(value)),
        failed: (job, error) => finish(job, () => reject(error)),
        late: () => undefined,
        expired: () => undefined,
      },
    );
    parts.inScope(() => slots.admit([job]));
  });
  encodedResult(value, codec, maxPayloadBytes);
  const payload = codec.encode(RESULT, value, undefined);
  assertEncoded(payload, 'encode', 'the result', Number.POSITIVE_INFINITY); // its size was looked at
  return codec.decode(Buffer.from(payload as string))?.data;
}

function reachOf({ metronome, codec, maxPayloadBytes }: PerformParts, children: GivenChildren | undefined): JobReach {
  const gatherings = new Gatherings(metronome, 1); // it comes alone
  return {
    gather: (job, batching) => gatherings.join(job, batching),
    children: () => Promise.resolve(reportOf(children)),
    addChildren: () => Promise.reject(new EchoStateError(CHILDLESS)),
    progress: (_job, value) => {
      encodedProgress(value, codec, maxPayloadBytes); // nobody is told, but what cannot be told is refused
      return Promise.resolve();
    },
  };
}

function reportOf({ outstanding = 0, values = {}, ignored = {}, failed = {} }: GivenChildren = {}): ChildrenReport {
  return { outstanding, values, ignored, failed };
}
