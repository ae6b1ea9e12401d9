import { describe } from '@jest/globals';
import { usePrefixTable } from './prefix-table.js';

describe('brand', () => {
  const table = usePrefixTable('brand');

  table.it('stamps the brand where there is none', {
    call: ['echomq:6.0.0'],
    answer: 'echomq:6.0.0',
    after: { version: 'echomq:6.0.0' },
  });

  table.it('answers the same brand, and writes nothing', {
    given: { version: 'echomq:6.0.0' },
    call: ['echomq:6.0.0'],
    answer: 'echomq:6.0.0',
    after: { version: 'echomq:6.0.0' },
  });

  table.it('answers a foreign brand, and leaves it', {
    given: { version: 'echomq:4.0.0' },
    call: ['echomq:6.0.0'],
    answer: 'echomq:4.0.0',
    after: { version: 'echomq:4.0.0' },
  });

  table.refuses('refuses to stamp no brand', {}, [[], ['']]);
  table.refusesTypes(['echomq:6.0.0'], ['{emq}:version']);
});
