import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Server programs we can start, in order of preference. */
export const SERVER_BINARIES = ['valkey-server', 'redis-server'] as const;

/**
 * The absolute path of the first server program on `PATH`, or undefined.
 *
 * @param path a `PATH`-like list. Default: the environment's.
 */
export function findBinary(path: string = process.env.PATH ?? ''): string | undefined {
  const folders = path.split(delimiter).filter((folder) => folder !== '');
  for (const name of SERVER_BINARIES) {
    for (const folder of folders) {
      const candidate = join(folder, name);
      if (isProgram(candidate)) return candidate;
    }
  }
  return undefined;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
