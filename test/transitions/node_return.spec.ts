import { describe } from '@jest/globals';
import { FAR, PAST } from './hand.js';
import { each, NOT_NUMBERS, TOO_LARGE } from './malformed.js';
import { usePrefixTable } from './prefix-table.js';

describe('node_return', () => {
  const table = usePrefixTable('node_return');
  const given = { nodes: { 17: FAR, 18: FAR }, owners: { 17: 'p1', 18: 'p2' } };

  table.it('gives a number back from the first millisecond in which nothing was minted', {
    given,
    call: ['p1', 17, PAST + 1],
    answer: 1,
    after: { nodes: { 17: PAST + 1, 18: FAR }, owners: given.owners },
  });

  table.it('leaves the number of another alone', { given, call: ['p1', 18, PAST], answer: 0, after: given });
  table.it('answers 0 for a number that nobody has', { given, call: ['p1', 19, PAST], answer: 0, after: given });

  const good = ['p1', '17', String(PAST)];
  table.refuses('refuses a time that is not canonical: infinity would take the number away for ever', given, [
    [],
    ['p1'],
    ['p1', '17'],
    ...each(good, 2, [...NOT_NUMBERS, ...TOO_LARGE, '-1']),
  ]);
  table.refusesTypes(good, ['{emq}:nodes', '{emq}:nodes:owner']);
});
