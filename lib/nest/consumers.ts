import type { Consumer, ConsumerEvents } from '../engine/consumer.js';
import { EchoRegistrationError, EchoStateError } from '../kernel/errors.js';

type EventName = keyof ConsumerEvents & string;
type Listener<E extends EventName> = (...args: ConsumerEvents[E]) => void;

/** The consumers that this app's processors run in, one a queue. Inject it to listen to them, pause them or look at them. */
export class Consumers {
  private readonly running = new Map<string, Consumer>();
  /** The queues that this process will serve: undefined before that is known, null when it only enqueues. */
  private planned: readonly string[] | null | undefined;
  private readonly awaited: { queue: string; listen: (consumer: Consumer) => void }[] = [];

  /** The queues served; none before the app has started, or with `consume: false`. */
  get queues(): string[] {
    return [...this.running.keys()];
  }

  /** @throws EchoStateError when nothing serves the queue, or not yet: consumers start when the app's bootstrap is over */
  of(queue: string): Consumer {
    const consumer = this.running.get(queue);
    if (consumer !== undefined) return consumer;
    throw new EchoStateError(`queue '${queue}' has no consumer ${this.whyNone(queue)}`);
  }

  /**
   * Listens to a queue's consumer. Called before the start, in a constructor say, it misses nothing; under `consume: false`
   * it hears nothing. A queue that nobody serves fails the start with an EchoRegistrationError.
   */
  on<E extends EventName>(queue: string, event: E, listener: Listener<E>): this {
    const listen = (consumer: Consumer) => void consumer.on(event, listener);
    const consumer = this.running.get(queue);
    if (consumer !== undefined) listen(consumer);
    else if (this.planned && !this.planned.includes(queue)) this.of(queue);
    else this.awaited.push({ queue, listen });
    return this;
  }

  /** @internal before the start: the queues that will be served, undefined where none shall be */
  plan(queues: readonly string[] | undefined): void {
    this.planned = queues ?? null;
    if (queues === undefined) return;
    for (const { queue } of this.awaited) {
      if (queues.includes(queue)) continue;
      throw new EchoRegistrationError(`consumers.on('${queue}', ...): no processor in this app serves that queue`);
    }
  }

  /** @internal */
  started(consumer: Consumer): void {
    this.running.set(consumer.queue, consumer);
    for (const { queue, listen } of this.awaited) if (queue === consumer.queue) listen(consumer);
  }

  /** @internal lets them all finish what they run */
  async drain(): Promise<void> {
    await Promise.all([...this.running.values()].map((consumer) => consumer.close()));
  }

  private whyNone(queue: string): string {
    if (this.planned === null) return 'here: this process only enqueues (consume: false)';
    if (this.planned === undefined || this.planned.includes(queue)) {
      return 'yet: consumers start when every onApplicationBootstrap is over';
    }
    const served = this.planned.length > 0 ? this.planned.join(', ') : 'none';
    return `in this process: no @Processor serves queue '${queue}'. Served are: ${served}`;
  }
}
