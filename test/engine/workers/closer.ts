import { EchoMq } from '../../../lib/core.js';

/** A process that opens an engine, closes it in the way its argument names, and then must end by itself. */
const [url, way] = process.argv.slice(2) as [string, string];

const echo = EchoMq.create({ connection: url, onError: () => {} });
const say = (type: string) => new Promise<void>((resolve) => process.send?.({ type }, () => resolve()));

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
await say('closed');
process.disconnect();
