import type { Redis } from 'ioredis';
import { until } from '../../support/until.js';

/** What clients say to the server, by MONITOR; what scripts call inside is left out. */
export class Overheard {
  private commands: string[][] = [];
  private marks = 0;

  private constructor(
    private readonly monitor: Redis,
    private readonly speaker: Redis,
  ) {
    monitor.on('monitor', (_time: string, args: string[], source: string) => {
      if (source !== 'lua') this.commands.push(args);
    });
  }

  /** `speaker` says the marks by which the end of what was said is known; it must not be otherwise used meanwhile. */
  static async listen(speaker: Redis): Promise<Overheard> {
    return new Overheard(await speaker.monitor(), speaker);
  }

  /** Everything said since the last call, or since the beginning. */
  async said(): Promise<string[][]> {
    const mark = `mark ${this.marks++}`;
    await this.speaker.echo(mark);
    const at = await until(
      () => this.commands.findIndex((args) => args[0]!.toLowerCase() === 'echo' && args[1] === mark) + 1,
      { what: 'the mark' },
    );
    const said = this.commands.slice(0, at - 1);
    this.commands = this.commands.slice(at);
    return said;
  }

  /** Ends the monitor's connection. */
  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.monitor.once('end', resolve));
    this.monitor.disconnect();
    await ended;
  }
}
