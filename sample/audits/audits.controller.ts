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
    try {
      const { id, dir, files } = await this.audits.start(body?.dir);
      return { id, dir, files, follow: `/audits/${id}` };
    } catch (error) {
      if (error instanceof TreeError) throw new BadRequestException(error.message);
      if (error instanceof EchoError && error.retryable)
        throw new ServiceUnavailableException('the queue is not available');
      throw error;
    }
  }

  @Get(':id')
  show(@Param('id') id: string) {
    const audit = this.audits.find(id);
    if (audit === undefined) throw new NotFoundException(`there is no audit ${id}`);
    const { dir, files, ended, isOver } = audit;
    return { id, dir, state: isOver ? 'over' : 'running', progress: { files, ended }, report: audit.report() };
  }
}
