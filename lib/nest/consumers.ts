import type { Consumer } from '../engine/consumer.js';
import type { ConsumerEvents } from '../engine/consumer-events.js';
import { EchoRegistrationError, EchoStateError } from '../kernel/errors.js';

type EventName = keyof ConsumerEvents & string;
type Listener<E extends EventName> = (...args: ConsumerEvents[E]) => void;

/** Starts the consumer of a queue. */
export type Launch = () => Consumer;

/** The consumers that this app's processors run in, one a queue. Inject it to start, listen to, pause or look at them. */
export class Consumers {
  private readonly running = new Map<string, Consumer>();
  /** Run by a test, job by job. */
  private readonly byHand = new Map<string, Consumer>();
  /** The queues that this process serves: undefined before that is known, null when it only enqueues. */
  private planned: ReadonlyMap<string, Launch> | null | undefined;
  private phase: 'booting' | 'open' | 'draining' = 'booting';
  private autoStart = false;
  /** Started before the app was: lists of queues, an empty one for all. */
  private readonly early: string[][] = [];
  private readonly awaited: { queue: string; listen: (consumer: Consumer) => void }[] = [];

  /** The queues served now; none before the app has started, or with `consume: false`. */
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
   * Starts these queues, or all: for an app with `autoStart: false`. No job runs before the app's bootstrap is over: called
   * earlier, it holds from then on. A queue that runs already goes on; after the shutdown has begun nothing starts.
   * @throws EchoStateError for a queue that this process does not serve
   */
  start(...queues: string[]): this {
    if (this.phase === 'booting') this.early.push(queues);
    else if (this.phase === 'open') this.launch(queues.length > 0 ? queues : (this.planned?.keys() ?? []));
    return this;
  }

  /**
   * Listens to a queue's consumer. Called before the start, in a constructor say, it misses nothing; under `consume: false`
   * it hears nothing. A queue that nobody serves fails the start with an EchoRegistrationError.
   */
  on<E extends EventName>(queue: string, event: E, listener: Listener<E>): this {
    const listen = (consumer: Consumer) => void consumer.on(event, listener);
    const consumer = this.running.get(queue);
    if (consumer !== undefined) listen(consumer);
    else if (this.planned && !this.planned.has(queue)) this.of(queue);
    else {
      this.awaited.push({ queue, listen });
      const byHand = this.byHand.get(queue);
      if (byHand !== undefined) listen(byHand);
    }
    return this;
  }

  /** @internal before the start, and again when a module was loaded late: what will be served; undefined: nothing shall be */
  plan(queues: ReadonlyMap<string, Launch> | undefined): void {
    this.planned = queues ?? null;
    if (queues === undefined) return;
    for (const { queue } of this.awaited) {
      if (queues.has(queue)) continue;
      throw new EchoRegistrationError(`consumers.on('${queue}', ...): no processor in this app serves that queue`);
    }
  }

  /** @internal the app's bootstrap is over */
  open(autoStart: boolean): void {
    if (this.phase !== 'booting') return;
    this.phase = 'open';
    this.autoStart = autoStart;
    this.more();
    for (const queues of this.early) this.start(...queues);
  }

  /** @internal starts what has been planned since */
  more(): void {
    if (this.autoStart) this.start();
  }

  /** @internal those who listen to the queue hear this one too, and it is closed with the others */
  join(consumer: Consumer): void {
    this.byHand.set(consumer.queue, consumer);
    for (const { queue, listen } of this.awaited) if (queue === consumer.queue) listen(consumer);
  }

  /** @internal starts none any more; lets those that a test runs finish, which the engine does not know: it drains the others */
  async drain(): Promise<void> {
    this.phase = 'draining';
    await Promise.all([...this.byHand.values()].map((consumer) => consumer.close()));
  }

  private launch(queues: Iterable<string>): void {
    for (const queue of queues) {
      if (this.running.has(queue)) continue;
      const launch = this.planned?.get(queue);
      if (launch === undefined) throw new EchoStateError(`queue '${queue}' cannot be started ${this.whyNone(queue)}`);
      const consumer = launch();
      this.running.set(queue, consumer);
      for (const { queue: awaited, listen } of this.awaited) if (awaited === queue) listen(consumer);
    }
  }

  private whyNone(queue: string): string {
    if (this.planned === null) return 'here: this process only enqueues (consume: false)';
    if (this.planned?.has(queue) && this.phase === 'open') {
      return `yet: with autoStart: false it waits for consumers.start('${queue}')`;
    }
    if (this.planned === undefined || this.planned.has(queue)) {
      return 'yet: consumers start when every onApplicationBootstrap is over';
    }
    const served = this.planned.size > 0 ? [...this.planned.keys()].join(', ') : 'none';
    return `in this process: no @Processor serves queue '${queue}'. Served are: ${served}`;
  }
}
