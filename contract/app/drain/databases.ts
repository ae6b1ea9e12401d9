import {
  type BeforeApplicationShutdown,
  Injectable,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type Type,
} from '@nestjs/common';
import { stage } from './stage.js';

/** Like a database client: of no use once it is closed. */
abstract class Database {
  isOpen = true;

  protected close(): void {
    this.isOpen = false;
    stage.write(`${this.constructor.name} is closed`);
  }
}

@Injectable()
export class ClosesOnDestroy extends Database implements OnModuleDestroy {
  onModuleDestroy(): void {
    this.close();
  }
}

@Injectable()
export class ClosesBeforeShutdown extends Database implements BeforeApplicationShutdown {
  beforeApplicationShutdown(): void {
    this.close();
  }
}

@Injectable()
export class ClosesOnShutdown extends Database implements OnApplicationShutdown {
  onApplicationShutdown(): void {
    this.close();
  }
}

export const DATABASES: Type<Database>[] = [ClosesOnDestroy, ClosesBeforeShutdown, ClosesOnShutdown];
