/** What a library must offer to be measured. One file per library fills this in; nothing else in bench/ knows a library. */

import type { Redis } from 'ioredis';
import type { JobData } from '../payload.js';

export const LIBRARIES = ['echomq', 'bullmq', 'bee-queue'] as const;
export type LibraryName = (typeof LIBRARIES)[number];

export interface Adapter {
  readonly name: LibraryName;
  /** npm package, for the version in the report. */
  readonly packageName: string;
  connect(url: string, options?: SessionOptions): Promise<Session>;
  /**
   * Jobs of this queue the server still holds, in whatever state: 0 means that every job was run and settled. Read with
   * the benchmark's own connection from the library's keys, so that checking a library costs that library nothing.
   */
  remaining(redis: Redis, queue: string): Promise<number>;
}

export interface SessionOptions {
  /** The session will hold many queues: use what the library recommends for that (shared connections). */
  manyQueues?: boolean;
  /** Consumers must also run delayed jobs (a library may need to be told). */
  delayedJobs?: boolean;
}

export interface Session {
  producer(queue: string): Promise<Producer>;
  /** Absent where the library has no flows. */
  flowProducer?(queues: FlowQueues): Promise<FlowProducer>;
  /** Resolves once the consumer is connected. Crash recovery is on, with the library's defaults. */
  consume(queue: string, concurrency: number, handler: Handler): Promise<Consumer>;
  close(): Promise<void>;
}

export interface Producer {
  add(data: JobData): Promise<unknown>;
  addDelayed(data: JobData, delayMs: number): Promise<unknown>;
  addMany(data: readonly JobData[]): Promise<unknown>;
}

export interface FlowQueues {
  parent: string;
  /** May be the same. */
  children: string;
}

export interface FlowProducer {
  /** One parent that waits for these children. Resolves when all of it is added. */
  add(parent: JobData, children: readonly JobData[]): Promise<unknown>;
}

export type Handler = (data: JobData) => void | Promise<void>;

export interface Consumer {
  /** Finishes what is running, settles it, and takes nothing more. */
  close(): Promise<void>;
}
