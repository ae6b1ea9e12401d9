import { createHash } from 'node:crypto';
import { type Edition, hasPlainEdition, textOf } from '../../lib/wire/script-text.js';
import type { ScriptName } from '../../lib/wire/transition.js';

/** What a call of this script carries on the wire, once the server knows it, for a queue of plain jobs. */
export function hashOf(script: ScriptName): string {
  return hashOfEdition(script, hasPlainEdition(script) ? 'plain' : 'whole');
}

/** The same for a queue that uses more than plain jobs. */
export function wholeHashOf(script: ScriptName): string {
  return hashOfEdition(script, 'whole');
}

/** As {@link hashOf}, in a cluster. */
export function clusterHashOf(script: ScriptName): string {
  return hashOfEdition(script, hasPlainEdition(script) ? 'plain' : 'whole', true);
}

function hashOfEdition(script: ScriptName, edition: Edition, cluster = false): string {
  return createHash('sha1')
    .update(textOf(script, cluster, edition))
    .digest('hex');
}
