import { describe, expect, it } from '@jest/globals';
import { FAR, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { usePrefixTable } from './prefix-table.js';
import { inMs } from './server-time.js';

const every = (score: number) => Object.fromEntries(Array.from({ length: 4096 }, (_, n) => [String(n), score]));

describe('node', () => {
  const table = usePrefixTable('node');

  table.it('leases the number drawn, when nobody ever had it', {
    call: ['p1', 30_000, 17, ''],
    answer: ['17', inMs(0), inMs(30_000), inMs(0)],
    after: { nodes: { 17: inMs(30_000) }, owners: { 17: 'p1' } },
  });

  table.it('leases a number whose lease is over, with a floor of now', {
    given: { nodes: { 17: PAST }, owners: { 17: 'p0' } },
    call: ['p1', 30_000, 17, ''],
    answer: ['17', inMs(0), inMs(30_000), inMs(0)],
    after: { nodes: { 17: inMs(30_000) }, owners: { 17: 'p1' } },
  });

  table.it('passes over numbers that others hold, around the end', {
    given: { nodes: { 4094: FAR, 4095: FAR, 0: FAR }, owners: { 4094: 'p0', 4095: 'p0', 0: 'p0' } },
    call: ['p1', 30_000, 4094, ''],
    answer: ['1', inMs(0), inMs(30_000), inMs(0)],
    after: {
      nodes: { 0: FAR, 1: inMs(30_000), 4094: FAR, 4095: FAR },
      owners: { 0: 'p0', 1: 'p1', 4094: 'p0', 4095: 'p0' },
    },
  });

  table.it('renews a number for its owner', {
    given: { nodes: { 17: FAR }, owners: { 17: 'p1' } },
    call: ['p1', 30_000, 99, 17],
    answer: ['17', '0', inMs(30_000), inMs(0)],
    after: { nodes: { 17: inMs(30_000) }, owners: { 17: 'p1' } },
  });

  table.it('renews a number whose lease is over, as long as nobody else has taken it', {
    given: { nodes: { 17: PAST }, owners: { 17: 'p1' } },
    call: ['p1', 30_000, 99, 17],
    answer: ['17', '0', inMs(30_000), inMs(0)],
    after: { nodes: { 17: inMs(30_000) }, owners: { 17: 'p1' } },
  });

  table.it('leases another to a process whose number has a new owner', {
    given: { nodes: { 17: FAR }, owners: { 17: 'p2' } },
    call: ['p1', 30_000, 17, 17],
    answer: ['18', inMs(0), inMs(30_000), inMs(0)],
    after: { nodes: { 17: FAR, 18: inMs(30_000) }, owners: { 17: 'p2', 18: 'p1' } },
  });

  table.it('leases anew when the keys are gone', {
    call: ['p1', 30_000, 5, 17],
    answer: ['5', inMs(0), inMs(30_000), inMs(0)],
    after: { nodes: { 5: inMs(30_000) }, owners: { 5: 'p1' } },
  });

  table.it('leases anew when the number is known and its lease is not', {
    given: { owners: { 17: 'p1' } },
    call: ['p1', 30_000, 5, 17],
    answer: ['5', inMs(0), inMs(30_000), inMs(0)],
    after: { nodes: { 5: inMs(30_000) }, owners: { 5: 'p1', 17: 'p1' } },
  });

  const good = ['p1', '30000', '5', ''];
  table.refuses(
    'refuses numbers that are not canonical, or out of bounds',
    { nodes: { 1: FAR }, owners: { 1: 'p0' } },
    [
      [],
      ['p1'],
      ['p1', '30000'],
      ...each(good, 1, [...NOT_NUMBERS, ...TOO_LARGE, '0', '-1']),
      ...each(good, 2, [...NOT_NUMBERS, ...TOO_LARGE, '-1', '4096']),
    ],
  );
  table.refusesTypes(good, ['{emq}:nodes', '{emq}:nodes:owner']);

  it('finds the last free number of 4,096, and then says that there is none', async () => {
    await table.build({ nodes: { ...every(FAR), 7: PAST } });
    expect(((await table.run(['p1', 30_000, 8, ''])) as Buffer[])[0]!.toString()).toBe('7');
    await expect(table.run(['p2', 30_000, 8, ''])).rejects.toMatchObject({ code: 'EMQSTATE' });
    expect((await table.state()).owners).toEqual({ 7: 'p1' });
  });
});
