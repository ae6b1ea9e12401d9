import { describe, expect, it } from '@jest/globals';
import { Metronome } from '../../lib/engine/metronome.js';
import { Minting } from '../../lib/engine/minting.js';
import { systemClock } from '../../lib/kernel/clock.js';
import { readId } from '../../lib/kernel/id.js';
import { Keyspace } from '../../lib/kernel/keyspace.js';
import { Executor } from '../../lib/wire/executor.js';
import { integer, type Reply } from '../../lib/wire/reply.js';
import { guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';
import { useConnections } from '../wire/connections.js';
import { fastClock } from './fast-clock.js';
import { useProxy } from './proxied.js';

const MINUTE = 60_000;

/** Asks a server whose clock is ahead, until that is set back. */
class AheadExecutor extends Executor {
  aheadMs = 0;

  override async script(...call: Parameters<Executor['script']>): Promise<Reply> {
    const reply = await super.script(...call);
    if (call[0] !== 'node') return reply;
    const [node, ...times] = (reply as Reply[]).map(integer);
    return [node!, ...times.map((ms) => ms + this.aheadMs)];
  }
}

describe('ids of a process whose server’s clock goes back', () => {
  const server = useServer();
  const connections = useConnections();
  guardLeaks();

  /** A process that has minted an id while the server's clock was ahead by so much; now it has been set back. */
  const setBack = async (ms: number) => {
    const executor = new AheadExecutor(await connections.open(server.url));
    const metronome = new Metronome(systemClock);
    const minting = new Minting(executor, new Keyspace('emq'), systemClock, metronome, 'p', () => undefined);
    executor.aheadMs = ms;
    await minting.renew();
    const last = minting.require();
    executor.aheadMs = 0;
    return { metronome, minting, last, ...readId(last) };
  };

  it('go on at once on another number when it was more than a lease; the old one is kept until its ids are past', async () => {
    const client = server.client();
    const { metronome, minting, node, mintedAt } = await setBack(6 * MINUTE);
    await minting.renew();
    const after = readId(minting.require());
    expect(after.node).not.toBe(node);
    expect(Math.abs(after.mintedAt.getTime() - Date.now())).toBeLessThan(MINUTE);
    expect(Number(await client.zscore('{emq}:nodes', String(node)))).toBeGreaterThan(mintedAt.getTime());
    expect(await client.hget('{emq}:nodes:owner', String(after.node))).toBe('p');
    await minting.stop(true);
    metronome.stop();
  });

  it('are not given to the next owner when the process ends while another number is about to be leased', async () => {
    const { metronome, minting, node, mintedAt } = await setBack(6 * MINUTE);
    const renewed = minting.renew();
    await minting.stop(true);
    await renewed;
    const [number, freeFrom, ...others] = await server.client().zrange('{emq}:nodes', '0', '-1', 'WITHSCORES');
    expect([number, others]).toEqual([String(node), []]);
    expect(Number(freeFrom)).toBeGreaterThan(mintedAt.getTime());
    metronome.stop();
  });

  it('go on in order, on their number, when it was less', async () => {
    const { metronome, minting, node, last } = await setBack(4 * MINUTE);
    await minting.renew();
    const after = minting.require();
    expect(readId(after).node).toBe(node);
    expect(after > last).toBe(true);
    await minting.stop(true);
    metronome.stop();
  });
});

describe('a lease of a node number that is not answered', () => {
  const server = useServer();
  const connections = useConnections();
  const proxied = useProxy(server);
  guardLeaks();

  it('is given up after 30 s, and asked for anew', async () => {
    const clock = fastClock(20);
    const executor = new Executor(await connections.open(proxied.url, clock));
    const metronome = new Metronome(clock);
    const minting = new Minting(executor, new Keyspace('emq'), clock, metronome, 'p', () => undefined);
    proxied.proxy.freeze('replies');
    await expect(minting.renew()).rejects.toMatchObject({ code: 'ECHO_TIMEOUT', retryable: true });
    proxied.proxy.thaw('replies');
    await until(() => minting.next(), { what: 'an id' }); // by itself
    await minting.stop(true);
    metronome.stop();
  });
});
