import { describe, it } from '@jest/globals';
import { findBinary } from '../../scripts/server/binary.js';

const binary = findBinary();
const note = '(skipped: no valkey-server or redis-server on PATH)';

/** `describe` for specs that kill, pause, restart or configure a server: skipped, saying why, where no server program is installed. */
export const describeWithProcess = (title: string, specs: () => void): void => {
  if (binary) describe(title, specs);
  else describe.skip(`${title} ${note}`, specs);
};

/** `it`, under the same condition as {@link describeWithProcess}. */
export const itWithProcess = (title: string, test: () => Promise<void>): void => {
  if (binary) it(title, test);
  else it.skip(`${title} ${note}`, test);
};
