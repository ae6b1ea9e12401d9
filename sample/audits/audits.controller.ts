import {
  BadRequestException,
  Body,
  Controller,
  Get,
  HttpCode,
  NotFoundException,
  Param,
  Post,
  ServiceUnavailableException,
} from '@nestjs/common';
import { EchoError } from 'nestjs-echomq';
import { TreeError } from '../documents/tree.js';
import { Audits } from './audits.js';

@Controller('audits')
export class AuditsController {
  constructor(private readonly audits: Audits) {}

  /** Answers at once: the work is in the queue. */
  @Post()
  @HttpCode(202)
  async start(@Body() body?: { dir?: unknown }) {
    const audit = await this.audits.start(body?.dir).catch(refuse);
    return { ...audit, follow: `/audits/${audit.id}` };
  }

  @Get(':id')
  async show(@Param('id') id: string) {
    const audit = await this.audits.find(id).catch(refuse);
    if (audit === undefined) throw new NotFoundException(`there is no audit ${id}`);
    return audit;
  }
}

function refuse(error: unknown): never {
  if (error instanceof TreeError) throw new BadRequestException(error.message);
  if (error instanceof EchoError && error.retryable)
    throw new ServiceUnavailableException('the queue is not available');
  throw error;
}
