import type { Consumer, ConsumerEvents } from '../engine/consumer.js';
import { EchoRegistrationError, EchoStateError } from '../kernel/errors.js';

type EventName = keyof ConsumerEvents & string;
type Listener<E extends EventName> = (...args: ConsumerEvents[E]) => void;

/** The consumers that this app's processors run in, one a queue. Inject it to listen to them, pause them or look at them. */
export class Consumers {
  private readonly running = new Map<string, Consumer>();
  private readonly awaited: { queue: string; listen: (consumer: Consumer) => void }[] = [];

  /** The queues served; none before the app has started, or with `consume: false`. */
  get queues(): string[] {
    return [...this.running.keys()];
  }

  /** @throws EchoStateError when nothing serves the queue, or not yet: consumers start when the app's bootstrap is over */
  of(queue: string): Consumer {
    const consumer = this.running.get(queue);
    if (consumer !== undefined) return consumer;
    throw new EchoStateError(
      this.running.size === 0
        ? `queue '${queue}' has no consumer yet: consumers start when every onApplicationBootstrap is over`
        : `queue '${queue}' has no consumer in this process. Served are: ${this.queues.join(', ')}`,
    );
  }

  /**
   * Listens to a queue's consumer. Called before the start, in a constructor say, it misses nothing; under `consume: false`
   * it hears nothing. A queue that nobody serves fails the start with an EchoRegistrationError.
   */
  on<E extends EventName>(queue: string, event: E, listener: Listener<E>): this {
    const listen = (consumer: Consumer) => void consumer.on(event, listener);
    const consumer = this.running.get(queue);
    if (consumer !== undefined) listen(consumer);
    else if (this.running.size > 0) this.of(queue);
    else this.awaited.push({ queue, listen });
    return this;
  }

  /** @internal before the start: somebody listens to a queue that will not be served */
  expect(queues: readonly string[]): void {
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
}
