import { type ContextId, ContextIdFactory, ModuleRef } from '@nestjs/core';
import { failureText } from '../engine/failure-text.js';
import type { Job } from '../engine/job.js';
import { EchoStateError } from '../kernel/errors.js';
import type { HostModule, ProviderWrapper } from './container.js';

/** A processor as one job sees it. */
export interface InScope {
  readonly instance: Record<string | symbol, unknown>;
  readonly context: ContextId;
}

/** Is the processor made anew for a job, by itself or through what it injects? */
export function isScoped(wrapper: ProviderWrapper): boolean {
  return !wrapper.isDependencyTreeStatic();
}

/**
 * Makes a request-scoped processor, with all that is request-scoped below it, for one job; a durable one is taken from
 * where the app's ContextIdStrategy keeps it. REQUEST is the job, and for what is durable the strategy's payload.
 */
export function inScopeOf(host: HostModule, wrapper: ProviderWrapper): (job: Job) => Promise<InScope> {
  const moduleRef = host.providers.get(ModuleRef)!.instance as ModuleRef;
  const isDurable = wrapper.isDependencyTreeDurable();
  return async (job) => {
    const context = contextOf(job);
    moduleRef.registerRequestByContextId(isDurable ? context.payload : job, context);
    const instance = await moduleRef.resolve(wrapper.token as never, context, { strict: true });
    return { instance, context };
  };
}

function contextOf(job: Job): ContextId {
  try {
    return ContextIdFactory.getByRequest(job as object);
  } catch (error) {
    const reason = failureText(error).split('\n', 1)[0];
    throw new EchoStateError(
      `the ContextIdStrategy of this app failed on a job, which it is given where it expects a request: ${reason}. ` +
        'Make it look for what it needs before it uses it (a job has id, name, data)',
    );
  }
}
