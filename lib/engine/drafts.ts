import { type Ageing, agedPriority } from '../kernel/ageing.js';
import { show } from '../kernel/arguments.js';
import type { Codec, TravellingOptions } from '../kernel/codec.js';
import { EchoArgumentError } from '../kernel/errors.js';
import type { JobId } from '../kernel/id.js';
import { assertEncoded } from './encoding.js';
import { type EnqueueOptions, landingOf } from './enqueue-options.js';
import type { OutgoingJob } from './enqueuer.js';
import { failureText } from './failure-text.js';
import type { Minting } from './minting.js';

/** A job ready to be sent; its id is empty while none can be minted. */
export type Draft = { -readonly [K in keyof OutgoingJob]: OutgoingJob[K] } & {
  /** Until it has an id, from which its age is counted. */
  ageing?: Ageing | undefined;
};

export interface DraftsParts {
  readonly codec: Codec;
  readonly minting: Minting;
  readonly maxPayloadBytes: number;
}

/** Makes of what enqueue was given what the wire sends. The bytes are those of this moment. */
export class Drafts {
  constructor(private readonly parts: DraftsParts) {}

  /** @throws EchoArgumentError */
  make(name: string, data: unknown, opts: EnqueueOptions | undefined): Draft {
    if (typeof name !== 'string' || name === '') {
      throw new EchoArgumentError(`a job's name must be a string that is not empty, got ${show(name)}`);
    }
    const { id, delay, fields, travelling, ageing } = landingOf(opts);
    const payload = this.encode(name, data, travelling);
    const draft: Draft = { id: id ?? this.parts.minting.next() ?? '', payload, delay, fields, fresh: id === undefined };
    if (ageing === undefined) return draft;
    draft.ageing = ageing;
    return draft.id === '' ? draft : named(draft, draft.id);
  }

  /** @throws EchoArgumentError */
  encode(name: string, data: unknown, travelling: TravellingOptions | undefined): string | Buffer {
    let payload: string | Buffer;
    try {
      payload = this.parts.codec.encode(name, data, travelling);
    } catch (error) {
      if (error instanceof EchoArgumentError) throw error;
      throw new EchoArgumentError(`the codec cannot encode the job: ${failureText(error)}`, error);
    }
    assertEncoded(payload, 'encode', 'the job', this.parts.maxPayloadBytes);
    return payload;
  }
}

/** The same draft under its id. @throws EchoArgumentError when its age makes no score */
export function named(draft: Draft, id: JobId): Draft {
  const { ageing } = draft;
  draft.id = id;
  if (ageing === undefined) return draft;
  draft.fields = ['priority', String(agedPriority(ageing, id)), ...draft.fields];
  draft.ageing = undefined;
  return draft;
}
