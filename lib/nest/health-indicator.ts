import type { EchoMq } from '../engine/echomq.js';
import type { EchoMqHealth, HealthOptions } from '../engine/health.js';
import { assertBoolean } from '../kernel/arguments.js';
import { EchoArgumentError } from '../kernel/errors.js';

export interface EchoMqHealthIndicatorOptions extends HealthOptions {
  /** For `@nestjs/terminus` 10, which hears of trouble by a throw only. Default false: what 11 and 12 need. */
  throwOnDown?: boolean | undefined;
}

/** What `@nestjs/terminus` takes from an indicator: a status and what is known, under the key. */
export type EchoMqHealthResult<Key extends string = string> = Record<
  Key,
  { status: 'up' | 'down' } & Omit<EchoMqHealth, 'ok'>
>;

/**
 * Says whether the server answers and the queues of this process are served, in the form that `@nestjs/terminus` 10.3 to
 * 12 understands; it does not need that package. For readiness, not for liveness: a restart does not bring a server back.
 * `EchoMqModule` provides it; for an instance with a name, make one of its `EchoMq`.
 */
export class EchoMqHealthIndicator {
  constructor(private readonly echo: Pick<EchoMq, 'health'>) {}

  /**
   * Never rejects because something is down, unless `throwOnDown` says so.
   * @throws EchoArgumentError for an option that makes no sense
   */
  async isHealthy<const Key extends string = 'echomq'>(
    key = 'echomq' as Key,
    options: EchoMqHealthIndicatorOptions = {},
  ): Promise<EchoMqHealthResult<Key>> {
    const { throwOnDown = false, ...limits } = options;
    assertBoolean(throwOnDown, 'throwOnDown', EchoArgumentError);
    const { ok, ...known } = await this.echo.health(limits);
    const result = { [key]: { status: ok ? 'up' : 'down', ...known } } as EchoMqHealthResult<Key>;
    if (throwOnDown && !ok) throw new HealthCheckFailed(result);
    return result;
  }
}

/** By `causes` terminus 10 knows it as an answer; by anything else it would take it for a fault of the indicator. */
class HealthCheckFailed extends Error {
  readonly isHealthCheckError = true;

  constructor(readonly causes: EchoMqHealthResult) {
    super('EchoMQ is not healthy');
    this.name = 'HealthCheckFailed';
  }
}
