import type { Redis } from 'ioredis';
import type { EchoMq, HealthOptions } from '../../lib/core.js';
import { until } from '../support/until.js';
import { hashOf } from './hashes.js';

/** What is said of a queue with which all is well and that has nothing to do. */
export const WELL = { ok: true, reasons: [], leader: true, pending: 0, paused: false, lateMs: 0, stuck: false };

export const MINUTE = 60_000;

/** The answer once the process is well, or once it is not. */
export async function once(ok: boolean, echo: EchoMq, options?: HealthOptions) {
  let health = await echo.health(options);
  const looked = async () => {
    health = await echo.health(options);
    return health.ok === ok;
  };
  await until(looked, { what: `ok: ${ok}` });
  return health;
}

/** Somebody leads the queue, which `echo` consumes. */
export async function led(echo: EchoMq, queue = 'q'): Promise<void> {
  await until(async () => (await echo.health()).queues[queue]?.leader, { what: `${queue} to be led` });
}

/** Makes every process of the queue beat at once. */
export async function beatNow(client: Redis, queue = 'q'): Promise<void> {
  await client.publish(`emq:{${queue}}:beat`, 'lead');
}

/** A look at the server, or at a queue of it. */
export function asksForHealth(command: Buffer): boolean {
  return command.includes('\r\nEXISTS\r\n') || command.includes(hashOf('health'));
}
