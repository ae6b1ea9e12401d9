/**
 * Tokens and metadata keys. By `Symbol.for` and by string, because the ESM and the CommonJS copy of this package can be
 * loaded in one process: their classes differ, these do not.
 */

/** Of `Jobs`: what `@InjectJobs(name)` injects, and what a test overrides. Without a name also known as the class `Jobs`. */
export function getJobsToken(name?: string): symbol {
  return tokenOf('jobs', name);
}

/** Of `Flows`. Without a name also known as the class `Flows`. */
export function getFlowsToken(name?: string): symbol {
  return tokenOf('flows', name);
}

/** Of `Schedules`. Without a name also known as the class `Schedules`. */
export function getSchedulesToken(name?: string): symbol {
  return tokenOf('schedules', name);
}

/** Of `Lanes`. Without a name also known as the class `Lanes`. */
export function getLanesToken(name?: string): symbol {
  return tokenOf('lanes', name);
}

/** Of `Bus`. Without a name also known as the class `Bus`. */
export function getBusToken(name?: string): symbol {
  return tokenOf('bus', name);
}

/** Of `EchoMq`. Without a name also known as the class `EchoMq`. */
export function getEchoMqToken(name?: string): symbol {
  return tokenOf('echomq', name);
}

/** Of `Consumers`. Without a name also known as the class `Consumers`. */
export function getConsumersToken(name?: string): symbol {
  return tokenOf('consumers', name);
}

/** Of the options of an `EchoMqModule`, as its factory computed them. */
export function getEchoMqOptionsToken(name?: string): symbol {
  return tokenOf(OPTIONS, name);
}

/** @internal */
export function isOptionsToken(token: unknown): boolean {
  return typeof token === 'symbol' && Symbol.keyFor(token)?.startsWith(`${PACKAGE}:${OPTIONS}`) === true;
}

const PACKAGE = 'nestjs-echomq';
const OPTIONS = 'options';

function tokenOf(what: string, name: string | undefined): symbol {
  return Symbol.for(name === undefined ? `${PACKAGE}:${what}` : `${PACKAGE}:${what}:${name}`);
}

/** Of the job that is being run: what `@InjectJob()` injects. */
export const JOB = Symbol.for(`${PACKAGE}:job`);
/** Of its signal: what `@InjectJobSignal()` injects. */
export const JOB_SIGNAL = Symbol.for(`${PACKAGE}:job-signal`);

/** On a class: its {@link ProcessorMetadata}. */
export const PROCESSOR_METADATA = `${PACKAGE}:processor`;
/** On a class: the {@link OnJobMetadata} of its own methods, without those it inherits. */
export const ON_JOB_METADATA = `${PACKAGE}:on-job`;
/** On a class: the {@link OnQueueEventMetadata} of its own methods, without those it inherits. */
export const ON_QUEUE_EVENT_METADATA = `${PACKAGE}:on-queue-event`;
/** Of what a test changes in the options of every `EchoMqModule`: {@link TestOverrides}. */
export const TEST_OVERRIDES = Symbol.for(`${PACKAGE}:test-overrides`);
