import type { Redis } from 'ioredis';

/** One message: the channel without the queue's base (`beat`, `w:p1`), and its text. */
export type Heard = [channel: string, message: string];

const MARK = 'ear:mark';

/** A real subscriber that can tell for certain that nothing more was said. */
export class Ear {
  private heard: Heard[] = [];
  private channels: string[] = [];
  private marks = 0;
  private marked: (() => void) | undefined;

  private constructor(
    private readonly subscriber: Redis,
    private readonly publisher: Redis,
    private readonly base: string,
  ) {
    subscriber.on('message', (channel: string, message: string) => {
      if (!channel.startsWith(MARK)) this.heard.push([channel.slice(this.base.length), message]);
      else if (message === String(this.marks)) this.marked?.();
    });
  }

  static async open(subscriber: Redis, publisher: Redis, base: string): Promise<Ear> {
    await subscriber.subscribe(MARK + base);
    return new Ear(subscriber, publisher, base);
  }

  /** Forgets what was heard, and listens to exactly these channels from now on. */
  async listen(channels: readonly string[]): Promise<void> {
    if (this.channels.length > 0) await this.subscriber.unsubscribe(...this.channels);
    this.channels = channels.map((channel) => this.base + channel);
    if (this.channels.length > 0) await this.subscriber.subscribe(...this.channels);
    this.heard = [];
  }

  /** All that was said up to now: a mark sent through the server arrives behind it. */
  async messages(): Promise<Heard[]> {
    this.marks++;
    const arrived = new Promise<void>((resolve) => {
      this.marked = resolve;
    });
    await this.publisher.publish(MARK + this.base, String(this.marks));
    await arrived;
    return this.heard;
  }
}
