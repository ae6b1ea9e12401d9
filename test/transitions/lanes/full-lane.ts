import { id } from '../hand.js';
import type { Lanes } from '../laned.js';

export const [A, B, C] = [id(1), id(2), id(3)];
export const CAP = { cap: 1 };
/** Lane x is at its cap: A runs, B waits. */
export const full: Lanes = {
  floor: 500,
  lanes: { x: { waits: { [B]: 0 }, runs: [A], tag: 1500, state: CAP, out: true } },
};
export const free = { ...CAP, active: 0 };
/** The cap is given back, and B may come. */
export const freed: Lanes = { floor: 500, lanes: { x: { waits: { [B]: 0 }, tag: 1500, state: free } } };
/** And A stands there again as well. */
export const again: Lanes = { floor: 500, lanes: { x: { waits: { [A]: 0, [B]: 0 }, tag: 1500, state: free } } };
/** A has lapsed, and waits in x. */
export const lapsed: Lanes = { floor: 500, lanes: { x: { waits: { [A]: 0, [B]: 0 }, tag: 1500 } } };
export const without: Lanes = { floor: 500, lanes: { x: { waits: { [B]: 0 }, tag: 1500 } } };
export const LAPSED = { [A]: { attempts: 1, lease_epoch: '-', stalls: 1, lapsed: 1 } };
/** The only job of a lane nobody configured. */
export const lone: Lanes = { floor: 500, lanes: { '': { waits: { [B]: 0 }, tag: 900 }, x: { runs: [A], tag: 1500 } } };
export const WOKEN: [string, unknown][] = [['w:p1', '']];
export const BURIED = { state: 'dead', last_error: 'boom', errors: '1', 'error:1': 'boom' };
