import { isDeepStrictEqual } from 'node:util';
import type { Logger } from '@nestjs/common';
import type { DeclareAnswer, ScheduleDeclaration } from '../engine/schedule-calls.js';
import type { Schedules } from '../engine/schedules.js';
import type { QueueRoutes } from './routes.js';

/** Declares what handlers want to have scheduled, queue by queue, and tells the log of what is left over from earlier versions. */
export class DeclaredSchedules {
  /** By queue, what was declared last. */
  private readonly known = new Map<string, readonly ScheduleDeclaration[]>();

  constructor(
    private readonly schedules: Schedules,
    private readonly logger: Logger,
    private readonly prune: boolean,
  ) {}

  /**
   * Those that it has not declared before. Resolves when the server has them, or does not take them now: they are tried again.
   * @throws EchoArgumentError for data that does not fit
   */
  async declare(served: readonly QueueRoutes[]): Promise<void> {
    const news = served.filter(({ queue, schedules }) => !isDeepStrictEqual(this.known.get(queue), schedules));
    await Promise.all(
      news.map(({ queue, definition, schedules }) => {
        this.known.set(queue, schedules);
        return this.schedules.keepDeclared(definition ?? queue, schedules, (answer) => this.tell(queue, answer));
      }),
    );
  }

  private async tell(queue: string, { declared, undeclared }: DeclareAnswer): Promise<void> {
    for (const { key, nextSlot } of declared) {
      const next = nextSlot === undefined ? 'is paused' : `runs next at ${nextSlot.toISOString()}`;
      this.logger.log(`Schedule '${key}' of queue '${queue}' ${next}`);
    }
    if (undeclared.length === 0) return;
    if (!this.prune) {
      this.logger.warn(
        `Schedules no longer declared on queue '${queue}': ${undeclared.join(', ')}. They go on; ` +
          'schedules.prune() removes them, or option pruneSchedules at the next start',
      );
      return;
    }
    try {
      const removed = await this.schedules.prune(queue);
      this.logger.log(`Removed schedules no longer declared on queue '${queue}': ${removed.join(', ')}`);
    } catch (error) {
      this.logger.error(`schedules no longer declared on queue '${queue}' are left: ${(error as Error).message}`);
    }
  }
}
