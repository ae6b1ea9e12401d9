import { Injectable } from '@nestjs/common';

/** Stands for a mail server. */
@Injectable()
export class Outbox {
  readonly sent: string[] = [];

  async send(mail: string): Promise<string> {
    this.sent.push(mail);
    return mail;
  }
}
