import { defer, filter, finalize, Observable, ReplaySubject, share, takeUntil } from 'rxjs';
import type { EngineBus, Listening } from '../engine/bus.js';
import { assertQueueEventName, type QueueEvent, type QueueEventName } from '../engine/queue-event.js';
import { assertQueueName } from '../kernel/keyspace.js';
import { type Queue, queueName } from '../kernel/queue.js';

/**
 * What happens to the jobs of queues, in whatever process, as Observables. For what this process's own consumers do, with the job
 * and the error themselves, there is `Consumers`, which asks nothing of the server.
 */
export class Bus {
  /** By queue, for all who observe it; queues may be tenants without end, and one that nobody observes any more is not among them. */
  private readonly shared = new Map<string, Observable<QueueEvent>>();
  /** Observed before the app was connected. */
  private readonly early = new Set<() => void>();
  private readonly ended = new ReplaySubject<void>(1);
  private opened = false;

  /** @internal */
  constructor(private readonly engine: EngineBus) {}

  /**
   * The events of a queue, or those that are named: `bus.on('mail', 'dead', 'retried')`. It is listened to from when the first
   * subscribes until the last has unsubscribed, on one subscription for all of them; it need not be a queue that this process
   * serves. Subscribed before the app is connected, in a constructor say, it begins when it is. It completes when the app shuts
   * down, after the running handlers have ended.
   *
   * An event tells only what happens from then on. What an observer throws, RxJS throws in a timer, which ends the process unless
   * the app sees to it: handle what may fail, by `catchError` say.
   * @throws EchoArgumentError for what is no queue or no event
   */
  on<Name extends QueueEventName = QueueEventName>(
    queue: string | Queue,
    ...events: Name[]
  ): Observable<QueueEvent<Name>> {
    const name = queueName(queue);
    assertQueueName(name);
    for (const event of events) assertQueueEventName(event);
    const wanted: ReadonlySet<string> = new Set(events);
    const observed = defer(() => this.observed(name));
    const some = events.length === 0 ? observed : observed.pipe(filter(({ event }) => wanted.has(event)));
    return some as Observable<unknown> as Observable<QueueEvent<Name>>;
  }

  /** @internal the app is connected */
  open(): void {
    if (this.opened) return;
    this.opened = true;
    for (const begin of this.early) begin();
    this.early.clear();
  }

  /** @internal nobody hears anything more */
  close(): void {
    this.ended.next();
  }

  private observed(queue: string): Observable<QueueEvent> {
    let observed = this.shared.get(queue);
    if (observed === undefined) {
      const forget = () => this.shared.delete(queue);
      observed = this.listenedTo(queue).pipe(takeUntil(this.ended), finalize(forget), share());
      this.shared.set(queue, observed);
    }
    return observed;
  }

  private listenedTo(queue: string): Observable<QueueEvent> {
    return new Observable((subscriber) => {
      let listening: Listening | undefined;
      const begin = () => {
        listening = this.engine.listen(queue, (event) => subscriber.next(event));
      };
      if (this.opened) begin();
      else this.early.add(begin);
      return () => {
        this.early.delete(begin);
        listening?.close();
      };
    });
  }
}
