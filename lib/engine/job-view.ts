import { type Codec, type Envelope, type TravellingOptions, travellingOptions } from '../kernel/codec.js';
import { type Lane, laneOf } from '../kernel/lane.js';
import type { JobState } from '../kernel/state.js';
import type { Row } from '../wire/transitions/index.js';
import { seenOf } from './results.js';

/** A job as it stands on the server. */
export interface JobView {
  id: string;
  state: JobState;
  name: string;
  data: unknown;
  opts: TravellingOptions | undefined;
  payload: Buffer;
  /** Claims so far. */
  attempts: number;
  /** Claims that do not count against the cap. */
  uncharged: number;
  /** Counted lapses of its lease. */
  stalls: number;
  /** Of a job that grows older (`ageingMs`) the score that was reckoned for it. */
  priority: number;
  lane: Lane | undefined;
  /** The deduplication key that frees itself with the job's end; a throttled one is not named. */
  dedupKey: string | undefined;
  cancelRequested: boolean;
  lastError: string | undefined;
  /** The newest kept failures, oldest first. */
  errors: { attempt: number; text: string }[];
  /** What its handler last reported (`job.progress`); the bytes, where the codec cannot read them. */
  progress: unknown;
  /** Of a kept `done` job, as its codec spelt it. */
  result: Buffer | undefined;
}

/** Undefined also when the codec cannot read it: a job must be seen to be dealt with. */
export function envelopeOf(payload: Buffer, codec: Codec): Envelope | undefined {
  try {
    return codec.decode(payload);
  } catch {
    return undefined;
  }
}

export function viewOf(id: string, row: Row, codec: Codec): JobView {
  const word = (field: string) => row.get(field)?.toString();
  const number = (field: string) => Number(word(field) ?? 0);
  const payload = row.get('payload') ?? Buffer.alloc(0);
  const envelope = envelopeOf(payload, codec);
  const attempts = word('errors')?.split(',') ?? [];
  return {
    id,
    state: word('state') as JobState,
    name: envelope?.name ?? '',
    data: envelope ? envelope.data : payload,
    opts: travellingOptions(envelope?.opts),
    payload,
    attempts: number('attempts'),
    uncharged: number('uncharged'),
    stalls: number('stalls'),
    priority: number('priority'),
    lane: word('lane') === undefined ? undefined : laneOf(word('lane')!),
    dedupKey: word('dedup'),
    cancelRequested: row.has('cancel'),
    lastError: word('last_error'),
    errors: attempts.map((attempt) => ({ attempt: Number(attempt), text: word(`error:${attempt}`) ?? '' })),
    progress: seenOf(row.get('progress'), codec),
    result: row.get('result'),
  };
}
