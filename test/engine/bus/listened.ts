import type { EchoMq, QueueEvent, QueueEventName } from '../../../lib/core.js';
import { until } from '../../support/until.js';

/** The events of a queue, from when it was asked for. */
export interface Listened {
  readonly events: QueueEvent[];
  /** Those of one kind. */
  of<Name extends QueueEventName>(...names: Name[]): QueueEvent<Name>[];
  /** The first event of a kind, once it has come. */
  first<Name extends QueueEventName>(name: Name): Promise<QueueEvent<Name>>;
  /** Resolves when there are so many of a kind. */
  count(name: QueueEventName, n: number): Promise<void>;
  close(): void;
}

/** Listens; resolves when nothing is missed any more. */
export async function listenTo(echo: EchoMq, queue: string): Promise<Listened> {
  const events: QueueEvent[] = [];
  const { ready, close } = echo.bus.listen(queue, (event) => events.push(event));
  await ready;
  const of = <Name extends QueueEventName>(...names: Name[]) =>
    events.filter(({ event }) => (names as QueueEventName[]).includes(event)) as unknown as QueueEvent<Name>[];
  return {
    events,
    of,
    first: async (name) => (await until(() => of(name)[0], { what: `an event '${name}'` }))!,
    count: async (name, n) => {
      const progress = () => events.length;
      await until(() => of(name).length >= n, { what: `${n} events '${name}'`, progress });
    },
    close,
  };
}
