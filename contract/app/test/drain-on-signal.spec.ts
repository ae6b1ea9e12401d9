import { describe, expect, it } from '@jest/globals';
import { KIND_NAMES } from '../drain/kinds.js';
import { PLACE_NAMES } from '../drain/places.js';
import { GOOD_END } from '../drain/queries.js';
import { guardLeaks } from './support/leaks.js';
import { usePrograms } from './support/program.js';
import { useServer } from './support/server.js';

describe('databases are open while handlers drain on SIGTERM (C056)', () => {
  const server = useServer();
  const start = usePrograms();
  guardLeaks();

  const cases = PLACE_NAMES.flatMap((place) => KIND_NAMES.map((kind) => [place, kind] as const));

  it.each(cases)('%s, of %s with enableShutdownHooks', async (place, kind) => {
    const program = start('drain-on-signal', kind, place);
    await program.printed('ready');
    program.child.kill('SIGTERM');
    expect(await program.end()).toBe('SIGTERM');
    expect(program.lines).toEqual(['ready', ...GOOD_END]);
    expect(await server.client.hget(`${server.prefix}:{queries}:metrics:completed`, 'count')).toBe('1');
  });
});
