import type { Clock } from '../../kernel/clock.js';
import { EchoTimeoutError } from '../../kernel/errors.js';
import type { QueueKeys } from '../../kernel/keyspace.js';
import { type Counts, counts } from '../../wire/transitions/index.js';
import type { Metronome } from '../metronome.js';
import type { Run } from './enqueued.js';
import { promoteDue } from './passing-time.js';

const PAUSE_MS = 10;

/** Resolves when nothing of these queues is due or running. @throws EchoTimeoutError that says what is left */
export async function untilIdle(
  { run, relay, metronome, clock }: { run: Run; relay: () => Promise<void>; metronome: Metronome; clock: Clock },
  queues: readonly QueueKeys[],
  timeoutMs: number,
): Promise<void> {
  const giveUpAt = clock.monotonic() + timeoutMs;
  let before: number | undefined;
  for (;;) {
    await relay(); // what is on its way to another queue is seen in neither
    const looks = await Promise.all(
      queues.map(async (keys) => {
        await promoteDue(run, keys);
        return { queue: keys.queue, counts: await run(counts, keys, undefined) };
      }),
    );
    const busy = looks.filter(({ counts }) => isBusy(counts));
    // Queues are looked at one by one, and a job may enqueue to one that has been looked at: two looks must see the same.
    const enqueued = looks.reduce((sum, { counts }) => sum + counts.metrics.enqueued, 0);
    if (busy.length === 0 && enqueued === before) return;
    before = busy.length === 0 ? enqueued : undefined;
    if (clock.monotonic() >= giveUpAt) throw stillBusy(timeoutMs, busy);
    if (busy.length > 0) await new Promise<void>((resolve) => void metronome.after(PAUSE_MS, resolve));
  }
}

function stillBusy(timeoutMs: number, busy: readonly { queue: string; counts: Counts }[]): EchoTimeoutError {
  const left = busy.map(
    ({ queue, counts }) => `queue '${queue}' has ${counts.pending} pending, ${counts.active} active`,
  );
  return new EchoTimeoutError(`not idle after ${timeoutMs} ms: ${left.join('; ') || 'jobs are enqueued all the time'}`);
}

/** What is paused need not move. */
function isBusy({ pending, active, paused }: Counts): boolean {
  return active > 0 || (pending > 0 && !paused);
}
