import { CHUNKS, PLAIN, SCRIPTS, WHOLE } from './scripts.generated.js';
import type { ScriptName } from './transition.js';

/** `plain` knows nothing beyond plain jobs, and says so before it has written anything; it costs less. */
export type Edition = 'plain' | 'whole';

export function hasPlainEdition(name: ScriptName): boolean {
  return Object.hasOwn(PLAIN, name);
}

/** What the server is given: a script, behind those of the shared functions that it uses. */
export function textOf(name: ScriptName, cluster: boolean, edition: Edition = 'whole'): string {
  const numbers: readonly number[] = edition === 'plain' ? PLAIN[name as keyof typeof PLAIN] : WHOLE[name];
  const shared = numbers.map((n) => CHUNKS[n]!).join('\n');
  // In a cluster a channel has to live where its queue does, so that publishing says whether anybody listens.
  const here = cluster ? shared.replace("PUBLISH = 'PUBLISH'", "PUBLISH = 'SPUBLISH'") : shared;
  return `${here}\n${SCRIPTS[name]}`;
}
