import { expectTypeOf } from 'expect-type';
import {
  type Bus,
  defineQueue,
  type EchoMq,
  type Job,
  OnQueueEvent,
  type QueueEvent,
  type QueueEventName,
} from 'nestjs-echomq';
import type { Observable } from 'rxjs';

declare const bus: Bus;
declare const echo: EchoMq;
declare const job: Job;
const Mail = defineQueue<{ welcome: { to: string } }>('mail');

// A union that `event` tells apart.
echo.bus.listen(Mail, (event) => {
  expectTypeOf(event).toEqualTypeOf<QueueEvent>();
  if (event.event === 'completed') expectTypeOf(event.result).toBeUnknown();
  else if (event.event === 'dead' || event.event === 'retried') expectTypeOf(event.error).toBeString();
  else if (event.event === 'stalled') expectTypeOf(event.stalls).toBeNumber();
  else if (event.event === 'landed') {
    expectTypeOf(event.state).toEqualTypeOf<'pending' | 'scheduled' | 'awaiting_children'>();
  } else if (event.event === 'progress') expectTypeOf(event.value).toBeUnknown();
  else expectTypeOf(event.event).toEqualTypeOf<'active' | 'cancelled'>();
});
echo.bus.listen('mail', async () => {});
expectTypeOf<QueueEvent['event']>().toEqualTypeOf<QueueEventName>();
expectTypeOf<QueueEvent<'dead' | 'stalled'>['event']>().toEqualTypeOf<'dead' | 'stalled'>();
expectTypeOf(bus.on('mail')).toEqualTypeOf<Observable<QueueEvent>>();
expectTypeOf(bus.on(Mail, 'dead', 'retried')).toEqualTypeOf<Observable<QueueEvent<'dead' | 'retried'>>>();
expectTypeOf(job.progress({ any: 'thing' })).toEqualTypeOf<Promise<void>>();

// @ts-expect-error there is no such event
bus.on('mail', 'died');
// @ts-expect-error of a landing there is no error
bus.on('mail', 'landed').subscribe(({ error }) => error);
// @ts-expect-error a job has no result here
echo.bus.listen('mail', (event) => event.result);

export class Fits {
  @OnQueueEvent('dead')
  dead({ error, id }: QueueEvent<'dead'>): string {
    return error + id;
  }

  @OnQueueEvent(['dead', 'retried'])
  failed({ error }: QueueEvent<'dead' | 'retried'>): string {
    return error;
  }

  @OnQueueEvent(Mail, 'completed')
  @OnQueueEvent('other', ['landed', 'completed'], { instance: 'other' })
  any(_event: QueueEvent): void {}

  @OnQueueEvent('mail', 'stalled')
  async without(): Promise<void> {}
}

export class Refused {
  // @ts-expect-error of a landing there is no error
  @OnQueueEvent('landed')
  landed({ error }: QueueEvent<'dead'>): string {
    return error;
  }

  // @ts-expect-error it may be a retry
  @OnQueueEvent('mail', ['dead', 'retried'])
  failed(_event: QueueEvent<'dead'>): void {}

  // @ts-expect-error a queue without an event
  @OnQueueEvent('mail')
  eventless(): void {}

  // @ts-expect-error that is no option
  @OnQueueEvent('mail', 'dead', { queue: 'x' })
  option(): void {}
}
