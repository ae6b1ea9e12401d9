import type { Redis } from 'ioredis';

/**
 * The longest of several calls, in ms that the server computed. SLOWLOG shows time that passed, in which a busy machine may have
 * done something else.
 */
export class LongestCall {
  ms = 0;

  constructor(private readonly client: Redis) {}

  readonly around = async <T>(call: () => Promise<T>): Promise<T> => {
    const before = await this.spent();
    const answer = await call();
    this.ms = Math.max(this.ms, (await this.spent()) - before);
    return answer;
  };

  private async spent(): Promise<number> {
    const info = await this.client.info('cpu');
    // Older servers know only of all their threads together.
    const of = (name: string) => new RegExp(`^used_cpu_${name}(?:_main_thread)?:(.*)`, 'gm');
    const seconds = (name: string) => Number([...info.matchAll(of(name))].at(-1)?.[1]);
    return (seconds('user') + seconds('sys')) * 1000;
  }
}
