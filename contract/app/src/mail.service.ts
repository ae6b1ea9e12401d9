import { Injectable } from '@nestjs/common';
import { Jobs } from 'nestjs-echomq';
import type { Welcome } from './mail.processor.js';

@Injectable()
export class MailService {
  constructor(private readonly jobs: Jobs) {}

  async welcome(to: string): Promise<string> {
    const data: Welcome = { to };
    const { id } = await this.jobs.enqueue('mail', 'welcome', data, { keepMs: 60_000 });
    return id;
  }

  /** What the handler answered, once it has. */
  async receipt(id: string): Promise<string | undefined> {
    const job = await this.jobs.get('mail', id);
    return job?.state === 'done' ? JSON.parse(String(job.result)) : undefined;
  }
}
