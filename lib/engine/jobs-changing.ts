import { assertInteger } from '../kernel/arguments.js';
import { EchoStateError, EchoStoreError } from '../kernel/errors.js';
import { assertJobId } from '../kernel/id.js';
import type { Outcome } from '../kernel/outcome.js';
import type { Queue } from '../kernel/queue.js';
import * as wire from '../wire/transitions/index.js';
import { Drafts } from './drafts.js';
import type { AnyDataFor } from './job-types.js';
import { envelopeOf } from './job-view.js';
import { JobsHeld } from './jobs-held.js';
import { checkData } from './validation.js';

/** One of those who change a payload at the same time gets its way each time. */
const MOST_TRIES = 50;

/** To change one's mind about a job that is there. */
export abstract class JobsChanging extends JobsHeld {
  /**
   * Another priority, whole, lower first: a pending job takes its new place at once, any other has it from the next time that it
   * is pending. `wrong_state`: it is done.
   */
  async changePriority(queue: string | Queue, id: string, priority: number): Promise<Outcome> {
    assertJobId(id);
    assertInteger(priority, 'priority', -Number.MAX_SAFE_INTEGER);
    const [outcome] = await this.run(wire.reprioritise, this.keys(queue), [{ id, priority }]);
    return outcome!;
  }

  /**
   * Other data for a job that nobody runs: pending, scheduled, dead, or waiting for its children. Its name and options stay.
   * `wrong_state`: it is active or done. On a queue that has schemas the data is validated by the job's name first.
   * @throws EchoDataError, with `issues`, when the data does not fit its schema
   * @throws EchoArgumentError when it cannot be encoded, is too large, or the queue declares no job of that name
   * @throws EchoStateError (`ECHO_NO_ENVELOPE`) when the job's payload is none that the codec has made
   * @throws EchoStoreError (`ECHO_CONFLICT`), retryable, when others change the same job all the while
   */
  async changeData<Of extends string | Queue>(queue: Of, id: string, data: AnyDataFor<Of>): Promise<Outcome> {
    assertJobId(id);
    const keys = this.keys(queue);
    const { codec } = this.parts;
    const drafts = new Drafts(this.parts);
    let checked: string | undefined;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const [row] = await this.run(wire.get, keys, [id]);
      if (row === undefined) return 'gone';
      const state = row.get('state')?.toString();
      if (state === 'active' || state === 'done') return 'wrong_state';
      const read = row.get('payload') ?? Buffer.alloc(0);
      const envelope = envelopeOf(read, codec);
      if (envelope === undefined) {
        const message = `job ${id} has a payload that is no envelope: there is no data to change`;
        throw new EchoStateError(message, 'ECHO_NO_ENVELOPE');
      }
      if (typeof queue !== 'string' && envelope.name !== checked) await checkData(queue, envelope.name, data);
      checked = envelope.name;
      const payload = drafts.encode(envelope.name, data, envelope.opts);
      const [outcome] = await this.run(wire.rewrite, keys, [{ id, read, payload }]);
      if (outcome !== 'stale') return outcome!;
    }
    throw new EchoStoreError('ECHO_CONFLICT', `job ${id} was changed by others all the while`, true);
  }

  /** A job that waits for its time need not wait any longer. `wrong_state`: it does not wait (any more). */
  async promoteNow(queue: string | Queue, id: string): Promise<Outcome> {
    assertJobId(id);
    const [outcome] = await this.run(wire.reschedule, this.keys(queue), [{ id, delay: '' }]);
    return outcome!;
  }
}
