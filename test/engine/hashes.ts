import { createHash } from 'node:crypto';
import { textOf } from '../../lib/wire/script-text.js';
import type { ScriptName } from '../../lib/wire/transition.js';

/** What a call of this script carries on the wire, once the server knows it. */
export function hashOf(script: ScriptName): string {
  return createHash('sha1').update(textOf(script, false)).digest('hex');
}
