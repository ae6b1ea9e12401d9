import { Module } from '@nestjs/common';
import { MailProcessor } from './mail.processor.js';
import { MailService } from './mail.service.js';
import { Outbox } from './outbox.js';

@Module({ providers: [MailService, MailProcessor, Outbox], exports: [MailService] })
export class MailModule {}
