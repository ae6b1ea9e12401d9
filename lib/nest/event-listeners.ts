import type { Logger } from '@nestjs/common';
import { isObservable } from 'rxjs';
import type { EngineBus, Listening } from '../engine/bus.js';
import { failureText } from '../engine/failure-text.js';
import { asked } from '../engine/handler.js';
import type { QueueEvent } from '../engine/queue-event.js';
import { EchoRegistrationError } from '../kernel/errors.js';
import type { EventMethod } from './event-methods.js';
import { lastOf } from './observable-result.js';

/** Calls the `@OnQueueEvent` methods of one instance, from the start to the shutdown. */
export class EventListeners {
  private planned: ReadonlyMap<string, readonly EventMethod[]> = new Map();
  private readonly listening = new Map<string, Listening>();

  constructor(
    private readonly bus: EngineBus,
    private readonly logger: Logger,
  ) {}

  /** Again when more have come. @throws EchoRegistrationError for what is no method */
  plan(methods: readonly EventMethod[]): void {
    const planned = new Map<string, EventMethod[]>();
    for (const method of methods) {
      if (typeof functionOf(method) !== 'function') {
        throw new EchoRegistrationError(`${method.place} is @OnQueueEvent but is no function`);
      }
      const same = planned.get(method.queue);
      if (same === undefined) planned.set(method.queue, [method]);
      else same.push(method);
    }
    this.planned = planned;
  }

  /** Listens to every planned queue. False when there is none that it did not listen to before. */
  start(): boolean {
    const news = [...this.planned.keys()].filter((queue) => !this.listening.has(queue));
    for (const queue of news) {
      this.listening.set(
        queue,
        this.bus.listen(queue, (event) => this.tell(event)),
      );
      const events = new Set(this.planned.get(queue)!.flatMap((method) => method.events));
      this.logger.log(`Listening to the events of queue '${queue}': ${[...events].join(', ')}`);
    }
    return news.length > 0;
  }

  /** Nothing more is called; resolves when what was called has ended, or has had its time. */
  async stop(): Promise<void> {
    const all = [...this.listening.values()];
    for (const { close } of all) close();
    await Promise.all(all.map(({ idle }) => idle()));
  }

  private tell(event: QueueEvent): Promise<unknown> | undefined {
    const running: Promise<unknown>[] = [];
    for (const method of this.planned.get(event.queue) ?? []) {
      if (!method.events.includes(event.event)) continue;
      try {
        const answer: unknown = functionOf(method).call(method.instance, event);
        const done = isObservable(answer) ? lastOf(answer) : asked(answer);
        if (done instanceof Promise) running.push(done.catch((thrown) => this.failed(method, event, thrown)));
      } catch (thrown) {
        this.failed(method, event, thrown);
      }
    }
    return running.length > 0 ? Promise.all(running) : undefined;
  }

  private failed({ place }: EventMethod, { event, queue, id }: QueueEvent, thrown: unknown): void {
    this.logger.error(`${place} threw on '${event}' of job ${id} of queue '${queue}': ${failureText(thrown)}`);
  }
}

function functionOf({ instance, method }: EventMethod): (event: QueueEvent) => unknown {
  return (instance as Record<string | symbol, (event: QueueEvent) => unknown>)[method]!;
}
