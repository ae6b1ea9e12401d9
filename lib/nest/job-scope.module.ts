import { Global, Inject, Module, Scope } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { Job } from '../engine/job.js';
import { EchoStateError } from '../kernel/errors.js';
import { JOB, JOB_SIGNAL } from './tokens.js';

/**
 * Injects the {@link Job} that is being run. Whoever injects it is made anew for every job, and so are those who inject
 * them, up to the processor. In an app that serves requests too, making it for a request fails.
 */
export function InjectJob(): PropertyDecorator & ParameterDecorator {
  return Inject(JOB);
}

/** Injects the AbortSignal of the job that is being run; else as {@link InjectJob}. */
export function InjectJobSignal(): PropertyDecorator & ParameterDecorator {
  return Inject(JOB_SIGNAL);
}

function theJob(request: unknown): Job {
  if (request instanceof Job) return request;
  throw new EchoStateError(
    '@InjectJob() and @InjectJobSignal() work only in what is made for one job: not for requests, nor in durable providers. ' +
      'What serves both injects REQUEST, which is the job or the request',
  );
}

/** Static, and so once in an app; global, so that every module can inject the job. */
@Global()
@Module({
  providers: [
    { provide: JOB, scope: Scope.REQUEST, inject: [REQUEST], useFactory: theJob },
    { provide: JOB_SIGNAL, scope: Scope.REQUEST, inject: [JOB], useFactory: ({ signal }: Job) => signal },
  ],
  exports: [JOB, JOB_SIGNAL],
})
export class JobScopeModule {}
