import { Injectable } from '@nestjs/common';
import { OnJob, Processor } from 'nestjs-echomq';
import { ClosesBeforeShutdown, ClosesOnDestroy, ClosesOnShutdown } from './databases.js';
import { stage } from './stage.js';

/** Its job runs when the shutdown begins, and needs every database after that. */
@Injectable()
@Processor('queries')
export class Queries {
  constructor(
    private readonly destroyed: ClosesOnDestroy,
    private readonly before: ClosesBeforeShutdown,
    private readonly shutDown: ClosesOnShutdown,
  ) {}

  @OnJob('query')
  async query(): Promise<void> {
    stage.handlerRuns.open();
    await stage.handlerMayEnd.opened;
    for (const database of [this.destroyed, this.before, this.shutDown]) {
      stage.write(`the handler finds ${database.constructor.name} ${database.isOpen ? 'open' : 'CLOSED'}`);
    }
  }
}

/** The only right order. */
export const GOOD_END = [
  'the handler finds ClosesOnDestroy open',
  'the handler finds ClosesBeforeShutdown open',
  'the handler finds ClosesOnShutdown open',
  'ClosesOnDestroy is closed',
  'ClosesBeforeShutdown is closed',
  'ClosesOnShutdown is closed',
];
