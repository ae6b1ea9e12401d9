import { describe, expect, it } from '@jest/globals';
import type { QueueDump } from '../support/dump.js';
import { checkInvariants } from '../support/invariants.js';

const NEVER = Number.MAX_SAFE_INTEGER;
const sound: QueueDump = {
  schedules: {
    zset: [
      ['waits', 2000],
      ['paused', NEVER],
    ],
  },
  'schedule:waits': { hash: { rev: 'r', last_slot: '1000' } },
  'schedule:paused': { hash: { rev: 'r', paused: '1' } },
};

describe('the invariants of repeating schedules', () => {
  it('hold of one that waits and one that is paused', () => {
    expect(checkInvariants(sound)).toEqual([]);
  });

  const broken: [what: string, change: QueueDump, fault: string][] = [
    ['a row of another type', { 'schedule:waits': { string: 'x' } }, 'row schedule:waits has the wrong type'],
    [
      'a row that stands nowhere',
      { 'schedule:other': { hash: { rev: 'r' } } },
      'schedule other has a row and stands nowhere',
    ],
    [
      'a paused one at a slot',
      { 'schedule:waits': { hash: { paused: '1' } } },
      'schedule waits stands at 2000, paused or not',
    ],
    [
      'one at no slot that is not paused',
      { 'schedule:paused': { hash: {} } },
      `schedule paused stands at ${NEVER}, paused or not`,
    ],
    [
      'one at a slot that has fired',
      { 'schedule:waits': { hash: { last_slot: '2000' } } },
      'schedule waits has fired the slot it stands at',
    ],
    ['the set being none', { schedules: { string: 'x' } }, 'row schedules has the wrong type'],
  ];
  it.each(broken)('are broken by %s', (_what, change, fault) => {
    expect(checkInvariants({ ...sound, ...change })).toEqual([fault]);
  });

  it('are broken by a member without a row', () => {
    const { 'schedule:waits': _, ...rest } = sound;
    expect(checkInvariants(rest)).toEqual(['schedule waits stands at a slot and has no row']);
  });
});
