import { isDelay } from '../kernel/arguments.js';
import { DEFAULT_BACKOFF, waitAfter } from '../kernel/backoff.js';
import { type EchoError, EchoStateError } from '../kernel/errors.js';
import { type Discard, NotHandled, onPurpose, type RateLimited, type Snooze } from '../kernel/outcome.js';
import type { ConsumerSettings } from './consumer-options.js';
import { failureText } from './failure-text.js';
import type { Job } from './job.js';

/** What a handler's throw means for its job: how its claim is settled. */
export type Verdict =
  /** `delay` as the wire spells it. */
  | { readonly kind: 'release'; readonly delay: string; readonly unhandled: boolean }
  | { readonly kind: 'wait' }
  | { readonly kind: 'retry'; readonly delayMs: number; readonly maxAttempts: number; readonly text: string };

/** `fault` is told when the backoff function itself threw; the default backoff is then taken. */
export function verdictOn(
  error: unknown,
  job: Job,
  settings: Readonly<Pick<ConsumerSettings, 'attempts' | 'backoff'>>,
  fault: (error: EchoError) => void,
): Verdict {
  const thrown = onPurpose(error);
  if (thrown === 'snooze' && isDelay((error as Snooze).ms)) {
    return { kind: 'release', delay: String((error as Snooze).ms), unhandled: error instanceof NotHandled };
  }
  if (thrown === 'rate-limited' && isDelay((error as RateLimited).ms)) {
    const { ms, scope } = error as RateLimited;
    return { kind: 'release', delay: `${scope === 'queue' ? 'queue' : 'lane'}:${ms}`, unhandled: false };
  }
  if (thrown === 'wait') return { kind: 'wait' };
  if (thrown === 'discard') {
    return { kind: 'retry', delayMs: 0, maxAttempts: 0, text: (error as Discard).message };
  }
  const maxAttempts = job.opts?.attempts ?? settings.attempts;
  return { kind: 'retry', delayMs: waitBefore(job, error, settings, fault), maxAttempts, text: failureText(error) };
}

function waitBefore(
  job: Job,
  error: unknown,
  settings: Readonly<Pick<ConsumerSettings, 'backoff'>>,
  fault: (error: EchoError) => void,
): number {
  const failures = Math.max(1, job.attempt);
  try {
    return waitAfter(job.opts?.backoff ?? settings.backoff, failures, error, Math.random);
  } catch (thrown) {
    fault(new EchoStateError(`the backoff function of queue '${job.queue}' threw: ${failureText(thrown)}`));
    return waitAfter(DEFAULT_BACKOFF, failures, error, Math.random);
  }
}
