/** Every scenario, in the order in which they run. */

import type { Scenario } from '../scenario.js';
import { bulk } from './bulk.js';
import { delayed } from './delayed.js';
import { enqueue } from './enqueue.js';
import { flows } from './flows.js';
import { idle } from './idle.js';
import { killed } from './killed.js';
import { fairness, laneClaims } from './lanes.js';
import { latency, latencyTwoProcesses } from './latency.js';
import { memory } from './memory.js';
import { nest } from './nest.js';
import { processing } from './processing.js';

export const scenarios: readonly Scenario[] = [
  enqueue,
  bulk,
  ...processing,
  nest,
  ...flows,
  laneClaims,
  fairness,
  memory,
  latency,
  latencyTwoProcesses,
  delayed,
  idle,
  killed,
];
