import { Injectable } from '@nestjs/common';
import { Job, OnJob, Processor } from 'nestjs-echomq';
import { Outbox } from './outbox.js';

export interface Welcome {
  to: string;
}

@Injectable()
@Processor('mail', { concurrency: 10 })
export class MailProcessor {
  constructor(private readonly outbox: Outbox) {}

  @OnJob('welcome')
  async welcome(job: Job<Welcome>): Promise<string> {
    return this.outbox.send(`Welcome, ${job.data.to}`);
  }
}
