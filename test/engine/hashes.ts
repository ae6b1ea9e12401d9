import { createHash } from 'node:crypto';
import { PRELUDE, SCRIPTS } from '../../lib/wire/scripts.generated.js';
import type { ScriptName } from '../../lib/wire/transition.js';

/** What a call of this script carries on the wire, once the server knows it. */
export function hashOf(script: ScriptName): string {
  return createHash('sha1').update(`${PRELUDE}\n${SCRIPTS[script]}`).digest('hex');
}
