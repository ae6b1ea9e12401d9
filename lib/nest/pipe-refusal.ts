import { HttpException } from '@nestjs/common';
import { Discard } from '../kernel/outcome.js';

/** The statuses by which pipes say that the data is wrong. */
const REFUSALS = [400, 422];
const LONGEST = 1000;

/**
 * What a pipe threw, as the job's end: data that was refused will be refused again, so it buries the job. Anything else is
 * left as it is: what a pipe needs, a database say, may be away.
 */
export function refusalBy(thrown: unknown): unknown {
  if (!(thrown instanceof HttpException) || !REFUSALS.includes(thrown.getStatus())) return thrown;
  const discard = new Discard(`invalid data: ${messagesIn(thrown).join('; ')}`.slice(0, LONGEST));
  discard.cause = thrown;
  return discard;
}

function messagesIn(exception: HttpException): string[] {
  const response = exception.getResponse();
  const messages = messagesOf(typeof response === 'string' ? response : (response as { message?: unknown }).message);
  return messages.length > 0 ? messages : [exception.message];
}

/** Texts only: what else an exceptionFactory puts there, like class-validator's errors, holds the rejected values too. */
function messagesOf(told: unknown): string[] {
  if (typeof told === 'string') return [told];
  if (Array.isArray(told)) return told.flatMap(messagesOf);
  if (typeof told !== 'object' || told === null) return [];
  const { constraints, children } = told as { constraints?: object; children?: unknown };
  return [
    ...Object.values(constraints ?? {}).flatMap(messagesOf),
    ...(Array.isArray(children) ? messagesOf(children) : []),
  ];
}
