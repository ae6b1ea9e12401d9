import type { ByHand } from '../../engine/by-hand/by-hand.js';
import type { QueueByHand } from '../../engine/by-hand/queue-by-hand.js';
import { EchoArgumentError, EchoStateError } from '../../kernel/errors.js';
import { logFailures } from '../failure-log.js';
import type { Instance, Service } from '../instance.js';

/** One `EchoMqModule` of the app, in the hands of a test. */
export class Hands {
  readonly engine: ByHand;
  private readonly queues = new Map<string, QueueByHand>();

  constructor(readonly instance: Instance) {
    this.engine = instance.echo.byHand();
  }

  get name(): string | undefined {
    return this.instance.name;
  }

  /** The queues that its processors serve. */
  get served(): string[] {
    return [...this.instance.services.keys()];
  }

  /** The queues that have been named in this process, by whoever. */
  get known(): string[] {
    return [...new Set([...this.served, ...this.engine.queuesNamed])];
  }

  service(queue: string): Service | undefined {
    return this.instance.services.get(queue);
  }

  /** @throws EchoStateError where a consumer runs already: the two would take jobs from each other */
  queue(queue: string): QueueByHand {
    if (this.instance.consumers.queues.includes(queue)) {
      throw new EchoStateError(
        `queue '${queue}' has a consumer running (autoStart: true, or consumers.start()), which takes its jobs by itself: ` +
          'wait with kit.idle() instead of draining',
      );
    }
    let byHand = this.queues.get(queue);
    if (byHand === undefined) {
      byHand = this.serve(queue);
      this.queues.set(queue, byHand);
    }
    return byHand;
  }

  private serve(queue: string): QueueByHand {
    const { instance } = this;
    const { options } = instance.services.get(queue)!;
    // Looked up for each job, as where a consumer runs them: a module that is loaded late may add handlers.
    const byHand = this.engine.serve(queue, options, (job) => instance.services.get(queue)!.handler(job));
    logFailures(byHand.consumer, instance.logger);
    instance.consumers.join(byHand.consumer);
    return byHand;
  }
}

/** Those of one name, or all. @throws EchoArgumentError naming those that are there */
export function handsOf(all: readonly Hands[], instance: string | undefined): readonly Hands[] {
  if (instance === undefined) return all;
  const named = all.filter(({ name }) => name === instance);
  if (named.length > 0) return named;
  const names = all.map(({ name }) => (name === undefined ? 'one without a name' : `'${name}'`)).join(', ');
  throw new EchoArgumentError(`there is no EchoMqModule with name '${instance}' in this app. There is ${names}`);
}
