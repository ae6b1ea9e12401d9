/**
 * Tokens and metadata keys. By `Symbol.for` and by string, because the ESM and the CommonJS copy of this package can be
 * loaded in one process: their classes differ, these do not.
 */

/** The same provider as the class `Jobs`. */
export const JOBS = Symbol.for('nestjs-echomq:jobs');
/** The same provider as the class `EchoMq`. */
export const ECHO_MQ = Symbol.for('nestjs-echomq:echomq');
/** The same provider as the class `Consumers`. */
export const CONSUMERS = Symbol.for('nestjs-echomq:consumers');

/** On a class: its {@link ProcessorMetadata}. */
export const PROCESSOR_METADATA = 'nestjs-echomq:processor';
/** On a class: the {@link OnJobMetadata} of its own methods, without those it inherits. */
export const ON_JOB_METADATA = 'nestjs-echomq:on-job';
