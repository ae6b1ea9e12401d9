import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { census, expectNoLeaks, guardLeaks } from '../support/leaks.js';
import { useServer } from '../support/server.js';
import { until } from '../support/until.js';

describe('the leak guard', () => {
  const server = useServer();
  guardLeaks();

  it('names a timer that was left running', async () => {
    const before = census();
    const timer = setTimeout(() => {}, 60_000);
    await expect(expectNoLeaks(before, 20)).rejects.toThrow('left open by the test: 1 Timeout');
    clearTimeout(timer);
    await expectNoLeaks(before);
  });

  it('names a connection that was left open, with its far end', async () => {
    const before = census();
    const client = server.client();
    await client.ping();
    await expect(expectNoLeaks(before, 20)).rejects.toThrow(
      new RegExp(`1 TCPSocketWrap \\(open sockets: .*-> ${new URL(server.url).port}`),
    );
    client.disconnect();
    await expectNoLeaks(before);
  });

  it('names a port that is still listened on', async () => {
    const before = census();
    const listening = await new Promise<Server>((resolve) => {
      const started = createServer().listen(0, '127.0.0.1', () => resolve(started));
    });
    await expect(expectNoLeaks(before, 20)).rejects.toThrow('1 TCPServerWrap');
    listening.close();
    await expectNoLeaks(before);
  });

  it('waits for what is about to close', async () => {
    const before = census();
    setTimeout(() => {}, 30);
    await expectNoLeaks(before);
  });

  describe('with clients that the test did not close', () => {
    const statuses: string[] = [];
    const opened: ReturnType<typeof server.client>[] = [];
    afterEach(() => {
      statuses.push(...opened.map((client) => client.status));
    });

    it('sees them closed by the server harness', async () => {
      opened.push(server.client(), server.client({ lazyConnect: true }));
      await opened[0]!.ping();
    });

    it('as they were after the test before this one', () => {
      expect(opened.map((client) => client.status)).toEqual(['end', 'end']);
      expect(statuses).toEqual(['ready', 'wait']);
    });
  });
});

describe('until', () => {
  guardLeaks();

  it('resolves with the first truthy answer', async () => {
    let turns = 0;
    expect(await until(() => ++turns > 6 && `turn ${turns}`, { what: 'turn 7' })).toBe('turn 7');
  });

  it('gives up with what it waited for, also when the condition never answers', async () => {
    await expect(until(() => false, { timeoutMs: 10, what: 'godot' })).rejects.toThrow(
      'gave up waiting for godot after 10 ms',
    );
    await expect(until(() => new Promise(() => {}), { timeoutMs: 10, what: 'godot' })).rejects.toThrow('godot');
  });

  it('goes on for as long as there is progress, and gives up when there is none', async () => {
    let looks = 0;
    const eighth = () => {
      const over = performance.now() + 10;
      while (performance.now() < over);
      return ++looks === 8;
    };
    const what = 'more than the limit';
    await until(eighth, { timeoutMs: 20, what, progress: () => looks });
    expect(looks).toBe(8);
    looks = 0;
    await expect(until(eighth, { timeoutMs: 20, what, progress: () => 'none' })).rejects.toThrow(what);
  });

  it('passes on an error of the condition at once', async () => {
    const broken = () => {
      throw new Error('broken');
    };
    await expect(until(broken, { what: 'nothing' })).rejects.toThrow('broken');
  });
});
