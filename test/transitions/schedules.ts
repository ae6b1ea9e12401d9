import type { Fields, Hand } from './hand.js';
import { msUntil } from './server-time.js';

/** The row of a repeating schedule, as its declaration has left it. */
export const SCHEDULE = { rev: 'r', spec: 's', rules: '{}', payload: 'p', origin: '' };

/** Where a paused one stands. */
export const NEVER = Number.MAX_SAFE_INTEGER;

/** A repeating schedule that stands at its next slot, or is paused. */
export async function schedule(
  queue: Hand,
  key: string,
  nextSlot: number | 'paused',
  fields: Fields = {},
): Promise<void> {
  const paused = nextSlot === 'paused';
  await queue.client
    .pipeline()
    .hset(rowOf(queue, key), { ...SCHEDULE, ...(paused ? { paused: 1 } : {}), ...fields })
    .zadd(queue.keys.schedules, paused ? NEVER : nextSlot, key)
    .exec();
}

export function rowOf(queue: Hand, key: string): string {
  return `${queue.keys.base}schedule:${key}`;
}

/** A flat list of these fields and values, in any order: it depends on how the server stores the row. */
export function flat(fields: Fields): unknown {
  const wanted = Object.entries(fields).map(([name, value]) => `${name}=${value}`);
  return matcher(`flat ${wanted.join(' ')}`, (found) => {
    if (!Array.isArray(found)) return false;
    const pairs = found.flatMap((name, i) => (i % 2 === 0 ? [`${name}=${found[i + 1]}`] : []));
    return pairs.sort().join(' ') === wanted.sort().join(' ');
  });
}

/** What is said on `beat` of a slot: the milliseconds that were left until it. */
export function slotIn(at: number): unknown {
  const left = msUntil(at) as { asymmetricMatch(found: unknown): boolean };
  return matcher(
    `slot:${left}`,
    (found) => /^slot:\d+$/.test(String(found)) && left.asymmetricMatch(String(found).slice(5)),
  );
}

function matcher(what: string, asymmetricMatch: (found: unknown) => boolean): unknown {
  const said = () => what;
  return { $$typeof: Symbol.for('jest.asymmetricMatcher'), asymmetricMatch, toAsymmetricMatcher: said, toString: said };
}
