import type { Codec } from '../kernel/codec.js';
import type { Keyspace, QueueKeys } from '../kernel/keyspace.js';
import { type Queue, queueName } from '../kernel/queue.js';
import type { Connection } from '../wire/connection.js';
import type { Executor } from '../wire/executor.js';
import type { Transition } from '../wire/transition.js';
import type { Enqueuer } from './enqueuer.js';
import type { Flows } from './flows.js';
import type { LaneRules } from './lane-rules.js';
import type { Minting } from './minting.js';
import type { Schedules } from './schedules.js';
import type { Waits } from './waits.js';

export interface JobsParts {
  executor: Executor;
  connection: Connection;
  keyspace: Keyspace;
  codec: Codec;
  minting: Minting;
  enqueuer: Enqueuer;
  maxPayloadBytes: number;
  requestTimeoutMs: number;
  enqueueTimeoutMs: number;
  flows: Flows;
  waits: Waits;
  schedules: Schedules;
  laneRules: LaneRules;
  epoch(keys: QueueKeys): string | undefined;
}

/** How a method of {@link Jobs} becomes a call. Its methods stand by subject in the classes between this one and that. */
export abstract class JobsBase {
  /** @internal */
  constructor(protected readonly parts: JobsParts) {}

  protected keys(queue: string | Queue): QueueKeys {
    return this.parts.keyspace.queue(typeof queue === 'string' ? queue : queueName(queue));
  }

  protected run<Call, Answer>(step: Transition<Call, Answer>, keys: QueueKeys, call: Call): Promise<Answer> {
    return this.parts.executor.run(step, keys, call, this.parts.requestTimeoutMs);
  }

  /**
   * For one job, whose parent may be in another queue: nobody need lead this one. After a second sending, the answer may speak
   * of what the first one did.
   */
  protected async settle<Call, Answer>(
    step: Transition<Call, Answer[]>,
    keys: QueueKeys,
    call: Call,
  ): Promise<{ answer: Answer; resent: boolean }> {
    const { answer, resent } = await this.tracked(step, keys, call);
    this.parts.flows.owes(keys);
    return { answer: answer[0]!, resent };
  }

  protected async switch(step: Transition<void, boolean>, queue: string | Queue): Promise<boolean> {
    const { answer, resent } = await this.tracked(step, this.keys(queue), undefined);
    return answer || resent;
  }

  protected async tracked<Call, Answer>(
    step: Transition<Call, Answer>,
    keys: QueueKeys,
    call: Call,
  ): Promise<{ answer: Answer; resent: boolean }> {
    let resent = false;
    const onResend = () => {
      resent = true;
    };
    const answer = await this.parts.executor.run(step, keys, call, this.parts.requestTimeoutMs, onResend);
    return { answer, resent };
  }
}
