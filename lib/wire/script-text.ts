import { FLOW, PRELUDE, SCRIPTS } from './scripts.generated.js';
import type { ScriptName } from './transition.js';

/** In a cluster a channel has to live where its queue does, so that publishing says whether anybody listens. */
const SHARDED_PRELUDE = PRELUDE.replace("PUBLISH = 'PUBLISH'", "PUBLISH = 'SPUBLISH'");

/** What the server is given: a script, behind what all scripts share and, where it calls flows(), the steps of flows. */
export function textOf(name: ScriptName, cluster: boolean): string {
  const script = SCRIPTS[name];
  const shared = cluster ? SHARDED_PRELUDE : PRELUDE;
  return [shared, ...(script.includes('flows(') ? [FLOW] : []), script].join('\n');
}
