import type { ClusterSource } from '../../../lib/core.js';
import { FaultProxy } from '../../support/proxy.js';

interface Address {
  readonly host: string;
  readonly port: number;
}

/** What one process says to its servers, counted; and stopped at a certain command, which does not get through any more. */
export class Tap {
  private passed: number | undefined;
  private last = 0;
  private stopped: () => void = () => {};

  private constructor(
    private readonly proxies: readonly FaultProxy[],
    private readonly nodes: readonly Address[],
    private readonly cluster: boolean,
  ) {
    for (const proxy of proxies) {
      proxy.onRequest(() => {
        if (this.passed === undefined) return undefined;
        if (this.passed < this.last) {
          this.passed += 1;
          return undefined;
        }
        this.stopped();
        return 'hold';
      });
    }
  }

  static async open(nodes: readonly Address[], cluster = nodes.length > 1): Promise<Tap> {
    const proxies = await Promise.all(nodes.map(({ host, port }) => FaultProxy.listen({ host, port })));
    return new Tap(proxies, nodes, cluster);
  }

  /** As a worker's argument. */
  get connection(): string | ClusterSource {
    const at = (proxy: FaultProxy) => ({ host: '127.0.0.1', port: proxy.port });
    if (!this.cluster) return this.proxies[0]!.url;
    const natMap = Object.fromEntries(
      this.nodes.map(({ host, port }, i) => [`${host}:${port}`, at(this.proxies[i]!)] as const),
    );
    return { cluster: this.proxies.map(at), options: { natMap } };
  }

  /** From now on so many commands get through, on all connections together. Resolves when there is one more. */
  stopBehind(commands: number): Promise<void> {
    this.last = commands;
    this.passed = 0;
    return new Promise((resolve) => {
      this.stopped = resolve;
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
  }
}
