import type { ScheduleDeclaration } from '../engine/schedule-calls.js';
import { EchoRegistrationError } from '../kernel/errors.js';
import type { FoundProcessor } from './discovery.js';

/** What the processors of a queue declare. @throws EchoRegistrationError naming both places that declare one key */
export function schedulesOf(queue: string, processors: readonly FoundProcessor[]): ScheduleDeclaration[] {
  const places = new Map<string, string>();
  const declarations: ScheduleDeclaration[] = [];
  for (const { type, module, handlers } of processors) {
    for (const { method, schedule } of handlers) {
      if (schedule === undefined) continue;
      const place = `${type.name}.${String(method)} in ${module}`;
      const taken = places.get(schedule.key);
      if (taken !== undefined) {
        throw new EchoRegistrationError(
          `queue '${queue}': schedule '${schedule.key}' is declared by ${taken} and by ${place}: give one of them another key`,
        );
      }
      places.set(schedule.key, place);
      declarations.push(schedule);
    }
  }
  return declarations;
}
