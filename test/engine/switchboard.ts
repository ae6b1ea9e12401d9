import { connect, createServer, type Server, type Socket } from 'node:net';

/** One address whose new connections go to whatever server it is set to; those that are open stay where they are. */
export class Switchboard {
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly listener: Server,
    private target: { host: string; port: number },
  ) {
    listener.on('connection', (near) => {
      const far = connect(this.target);
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.sockets.add(one);
        one.pipe(other);
        one.on('error', () => other.destroy());
        one.on('close', () => {
          this.sockets.delete(one);
          other.destroy();
        });
      }
    });
  }

  static listen(target: { host: string; port: number }): Promise<Switchboard> {
    return new Promise((resolve) => {
      const listener = createServer();
      listener.listen(0, '127.0.0.1', () => resolve(new Switchboard(listener, target)));
    });
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.listener.address() as { port: number }).port}`;
  }

  /** Where connections that come from now on go. */
  set(target: { host: string; port: number }): void {
    this.target = target;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.listener.close(resolve));
  }
}
