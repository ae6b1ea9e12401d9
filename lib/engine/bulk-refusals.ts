import { EchoArgumentError } from '../kernel/errors.js';
import type { Draft } from './drafts.js';
import type { PlannedNode } from './flow-plan.js';
import { EchoDataError } from './invalid-data.js';

/** What a bulk of jobs is refused for, with the item that it is about. */

/** Of a bulk: the index of an item, or the callback. */
export type Place = number | 'then';

/** The same error, of that place. */
export function located(error: unknown, place: Place): EchoArgumentError {
  const message = `${place === 'then' ? place : `item ${place}`}: ${(error as Error).message}`;
  return error instanceof EchoDataError
    ? new EchoDataError(message, error.issues, error)
    : new EchoArgumentError(message, error);
}

/** Of a bulk with a callback: a job can be its child once. @throws EchoArgumentError naming the item */
export function refuseDoubles([root, ...items]: readonly PlannedNode[]): void {
  const given = new Set(root!.draft.fresh ? [] : [root!.draft.id]);
  items.forEach(({ draft: { id, fresh } }, i) => {
    if (fresh) return;
    if (given.has(id)) throw new EchoArgumentError(`item ${i}: the id ${id} stands twice in the bulk`);
    given.add(id);
  });
}

/** Of a bulk with a callback: it waits for all of its children, so none may be another job. @throws EchoArgumentError likewise */
export function refuseDedup(root: PlannedNode, items: readonly PlannedNode[]): void {
  const why = 'dedup is not for a job of a bulk with a callback: it, or its callback, would wait for another job';
  if (hasDedup(root.draft)) throw new EchoArgumentError(`then: ${why}`);
  const at = items.findIndex(({ draft }) => hasDedup(draft));
  if (at >= 0) throw new EchoArgumentError(`item ${at}: ${why}`);
}

function hasDedup({ fields }: Draft): boolean {
  return fields.some((field, i) => i % 2 === 0 && field === 'dedup');
}
