/** What the figures have to be. `aim` is what is hoped for beyond what is required. */

import type { LibraryName } from './adapters/adapter.js';

export type Target = {
  scenario: string;
  figure: string;
  /** The library the figure is divided by; absent: the figure itself. */
  against?: LibraryName;
} & ({ atLeast: number; aim?: number } | { atMost: number; aim?: number });

export const targets: readonly Target[] = [
  { scenario: 'enqueue', figure: 'rate', against: 'bullmq', atLeast: 2.5, aim: 4 },
  { scenario: 'bulk', figure: 'rate', against: 'bullmq', atLeast: 5 },
  { scenario: 'processing-1', figure: 'rate', against: 'bullmq', atLeast: 4, aim: 10 },
  { scenario: 'processing-100', figure: 'rate', against: 'bullmq', atLeast: 4, aim: 6 },
  { scenario: 'processing-100', figure: 'rate', against: 'bee-queue', atLeast: 3 },
  { scenario: 'processing-100', figure: 'serverCpu', against: 'bullmq', atMost: 0.3, aim: 0.2 },
  { scenario: 'processing-100', figure: 'nodeCpu', against: 'bullmq', atMost: 0.2 },
  { scenario: 'flows', figure: 'rate', against: 'bullmq', atLeast: 5 },
  { scenario: 'memory', figure: 'bytes', against: 'bullmq', atMost: 0.9 },
  { scenario: 'latency', figure: 'p50', against: 'bullmq', atMost: 0.5 },
  { scenario: 'delayed', figure: 'p99', atMost: 5 },
  { scenario: 'killed', figure: 'seconds', atMost: 20 },
  { scenario: 'idle', figure: 'connections', atMost: 3 },
  { scenario: 'idle', figure: 'commands', atMost: 1 },
];
