import { EchoMq } from '../../../lib/core.js';

/** A process that opens an engine, closes it in the way its argument names, and then must end by itself. */
const [url, way] = process.argv.slice(2) as [string, string];

const echo = EchoMq.create({ connection: url, onError: () => {} });
const say = (message: object) => new Promise<void>((resolve) => process.send?.(message, () => resolve()));

/** What would keep this process awake, a few turns later: sockets close in turns of their own. */
async function left(): Promise<string[]> {
  const awake = () => process.getActiveResourcesInfo().filter((kind) => /^(Timeout|Immediate|TCP|TLS)/.test(kind));
  for (let turn = 0; turn < 1_000 && awake().length > 0; turn++) await new Promise((next) => setImmediate(next));
  return awake();
}

async function closing(): Promise<void> {
  if (way === 'unopened') return echo.close();
  if (way === 'opening') {
    const opened = echo.open().then(
      () => {},
      () => {},
    );
    await echo.close();
    return opened;
  }
  await echo.open();
  if (way === 'idle') return echo.close();
  const consumer = echo.consume('q', {}, () => {});
  if (way === 'subscribing') return echo.close();
  await new Promise((resolve) => setTimeout(resolve, 100)); // its beat, its watchdog and its timers are set by now
  if (way === 'twice') {
    await Promise.all([echo.close(), echo.close(), consumer.close()]);
    return echo.close();
  }
  return echo.close();
}

await closing();
await say({ type: 'closed', left: await left() });
process.disconnect();
