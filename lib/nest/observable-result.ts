import { isObservable, lastValueFrom, Observable } from 'rxjs';
import type { Job } from '../engine/job.js';

/**
 * What a handler's answer comes to: of an Observable, also of a promised one, a promise of its last value, of anything else
 * itself. To look behind every promise costs 30 ns a job; without, an Observable would be taken for a result and never run.
 */
export function resultOf(answer: unknown, job: Job): unknown {
  if (answer instanceof Promise)
    return answer.then((value) => (isStream(value) ? lastOf(untilAborted(value, job)) : value));
  return isStream(answer) ? lastOf(untilAborted(answer, job)) : answer;
}

function isStream(value: unknown): value is Observable<unknown> {
  return typeof value === 'object' && value !== null && isObservable(value);
}

/** Its last value; undefined of one that ends without any. */
export function lastOf(stream: Observable<unknown>): Promise<unknown> {
  return lastValueFrom(stream, { defaultValue: undefined });
}

/** Ends with the signal's reason, and is unsubscribed, when the job's signal fires. Only here is a signal made unasked. */
export function untilAborted(stream: Observable<unknown>, job: Job): Observable<unknown> {
  return new Observable((subscriber) => {
    const { signal } = job;
    const stop = () => subscriber.error(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    subscriber.add(() => signal.removeEventListener('abort', stop));
    subscriber.add(stream.subscribe(subscriber));
    return undefined;
  });
}
