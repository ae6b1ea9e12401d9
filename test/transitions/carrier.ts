import { calls } from '../../lib/engine/owed-calls.js';
import { BEGINNING, isEarlier, type StreamId } from '../../lib/kernel/stream-id.js';
import { Outbox, type OwedEffect } from '../../lib/wire/outbox.js';
import { apply } from '../../lib/wire/transitions/index.js';
import { Hand } from './hand.js';

const PAGE = 1_000;

/** Carries what queues owe each other, as the relay does: per target in order, some entries a call, a landing alone. */
export class Carrier {
  constructor(
    private readonly hand: Hand,
    /** Entries a call, at most. */
    private readonly portion = 100,
    /** Around each call. */
    private readonly around = <T>(call: () => Promise<T>): Promise<T> => call(),
  ) {}

  /** Applies all that one queue owes. Answers how many entries were sent. */
  async carry(source: string): Promise<number> {
    const { executor, client } = this.hand;
    const byTarget = new Map<string, OwedEffect[]>();
    let sent = 0;
    for (const effect of await this.owedBy(source)) {
      const same = byTarget.get(effect.target);
      if (same) same.push(effect);
      else byTarget.set(effect.target, [effect]);
    }
    for (const [target, effects] of byTarget) {
      const { keys } = new Hand(client, executor, target);
      const call = (previous: StreamId, some: readonly OwedEffect[]) => {
        return executor.run(apply, keys, { source, previous, effects: some });
      };
      let applied = await call(BEGINNING, []);
      const due = effects.filter(({ id }) => isEarlier(applied, id));
      while (due.length > 0) {
        const [first] = calls(due.slice(0, this.portion));
        const some = due.splice(0, first!.length);
        const previous = applied;
        applied = await this.around(() => call(previous, some));
        sent += some.length;
      }
    }
    return sent;
  }

  private async owedBy(source: string): Promise<OwedEffect[]> {
    const { executor, client } = this.hand;
    const outbox = new Outbox(executor.connection, new Hand(client, executor, source).keys);
    const all: OwedEffect[] = [];
    for (;;) {
      const page = await outbox.read(all.at(-1)?.id ?? BEGINNING, PAGE);
      if (page.length === 0) return all;
      for (const effect of page) all.push(effect);
    }
  }

  /** Until these queues owe nothing any more. */
  async settle(queues: readonly string[]): Promise<void> {
    for (;;) {
      let sent = 0;
      for (const queue of queues) sent += await this.carry(queue);
      if (sent === 0) return;
    }
  }
}
