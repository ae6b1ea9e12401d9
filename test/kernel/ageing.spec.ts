import { describe, expect, it } from '@jest/globals';
import { agedPriority, assertAgeing } from '../../lib/kernel/ageing.js';
import { EchoArgumentError } from '../../lib/kernel/errors.js';
import { ID_EPOCH_MS, spellId } from '../../lib/kernel/id.js';

const at = (ms: number) => spellId(ms - ID_EPOCH_MS, 1, 0);
const NOW = Date.UTC(2030, 0, 1);

describe('a job that grows older', () => {
  it('stands where its priority is worth the time it has waited', () => {
    const score = (priority: number, ms: number) => agedPriority({ priority, ageingMs: 1000, delay: '' }, at(ms));
    expect(score(0, NOW)).toBe(NOW);
    expect(score(5, NOW)).toBe(score(0, NOW + 5000));
    expect(score(5, NOW)).toBeGreaterThan(score(0, NOW + 4999));
    expect(score(-1, NOW)).toBe(NOW - 1000);
  });

  it('waits from the moment it may run', () => {
    const score = (delay: string) => agedPriority({ priority: 1, ageingMs: 10, delay }, at(NOW));
    expect(score('250')).toBe(NOW + 260);
    expect(score(`@${NOW + 99}`)).toBe(NOW + 109);
    expect(score('@5')).toBe(NOW + 10);
  });

  it.each([
    [1, 0],
    [1, 1.5],
    [1, Number.NaN],
    [2 ** 40, 2 ** 20],
    [-(2 ** 53 - 1), 2],
  ])('is refused when no score can say it: priority %p, ageingMs %p', (priority, ageingMs) => {
    expect(() => assertAgeing({ priority, ageingMs })).toThrow(EchoArgumentError);
  });

  it('is refused when its delay goes beyond what a score can hold', () => {
    const ageing = { priority: 1, ageingMs: 1, delay: `@${Number.MAX_SAFE_INTEGER}` };
    expect(() => agedPriority(ageing, at(NOW))).toThrow(/no whole score/);
  });
});
