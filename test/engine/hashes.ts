import { createHash } from 'node:crypto';
import { hasPlainEdition, textOf } from '../../lib/wire/script-text.js';
import type { ScriptName } from '../../lib/wire/transition.js';

/** What a call of this script carries on the wire, once the server knows it, for a queue of plain jobs. */
export function hashOf(script: ScriptName): string {
  const edition = hasPlainEdition(script) ? 'plain' : 'whole';
  return createHash('sha1')
    .update(textOf(script, false, edition))
    .digest('hex');
}
