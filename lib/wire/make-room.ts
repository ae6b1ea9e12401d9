const MOST_REMEMBERED = 10_000;

/**
 * Before something is learnt of a queue, by its base. Names may come from tenants without end, so what was learnt first is forgotten
 * first; what is learnt again is the newest.
 */
export function makeRoom(learnt: Set<string> | Map<string, unknown>, base: string): void {
  learnt.delete(base);
  if (learnt.size < MOST_REMEMBERED) return;
  const [oldest] = learnt.keys();
  learnt.delete(oldest!);
}
