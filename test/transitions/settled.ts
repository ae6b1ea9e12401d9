import type { Hand } from './hand.js';

/** How a claim was made: the epoch in the row, and the token that its holder presents. */
export interface HolderCase {
  held: string;
  epoch: string;
  token: string;
}

/** The tokens that settle a claim of attempt 1. */
export const HOLDERS: readonly HolderCase[] = [
  { held: 'without an epoch', epoch: '-', token: '1' },
  { held: 'with an epoch', epoch: 'f00d.x1', token: '1@f00d.x1' },
  { held: 'natively, without an epoch (the row then has the bare run id)', epoch: 'f00d', token: '1' },
];

/** And tokens that do not. */
export const STRANGERS: readonly HolderCase[] = [
  { held: 'an earlier attempt', epoch: '-', token: '0' },
  { held: 'a later attempt', epoch: '-', token: '2' },
  { held: 'no token at all', epoch: '-', token: '' },
  { held: 'another spelling of the attempt', epoch: '-', token: '01' },
  { held: 'an epoch where the claim gave none', epoch: '-', token: '1@f00d.x1' },
  { held: 'no epoch where the claim gave one', epoch: 'f00d.x1', token: '1' },
  { held: 'the same run, another connection', epoch: 'f00d.x1', token: '1@f00d.x2' },
  { held: 'another run, the same connection', epoch: 'f00d.x1', token: '1@beef.x1' },
  { held: 'the run alone', epoch: 'f00d.x1', token: '1@f00d' },
  { held: 'the right epoch, another attempt', epoch: 'f00d.x1', token: '2@f00d.x1' },
  { held: 'the longer epoch that begins like the right one', epoch: 'f00d.x1', token: '1@f00d.x12' },
  { held: 'no epoch where the connection did not know the run', epoch: '-.x1', token: '1' },
];

/** The states in which attempt 1 is over, or was never begun. */
export const ENDED: readonly [title: string, given: (queue: Hand, id: string) => Promise<unknown>][] = [
  ['is pending, not lapsed', (queue, id) => queue.pending(id, { attempts: 1, lease_epoch: '-' })],
  ['is scheduled', (queue, id) => queue.scheduled(id, { attempts: 1, lease_epoch: '-' })],
  ['is dead', (queue, id) => queue.dead(id)],
  ['was claimed by another after it lapsed', (queue, id) => queue.active(id, { attempts: 2, lapsed: 1 })],
  ['lapsed again under another', (queue, id) => queue.lapsed(id, { attempts: 2, stalls: 2 })],
];
