import { EchoMq } from '../../../lib/core.js';

/** A process whose server dies while it closes with a job still running; then it must end by itself. */
const [url] = process.argv.slice(2) as [string];

const echo = await EchoMq.connect({ connection: url, onError: () => {} });
const told = (type: string) =>
  new Promise<void>((resolve) => {
    const listen = (message: { type: string }) => {
      if (message.type !== type) return;
      process.off('message', listen);
      resolve();
    };
    process.on('message', listen);
  });
const say = (type: string) => new Promise<void>((resolve) => process.send?.({ type }, () => resolve()));

const awake = () => process.getActiveResourcesInfo().filter((kind) => /^(Timeout|TCP|TLS)/.test(kind));

echo.consume('q', {}, async () => {
  await say('started');
  await told('end');
});
await told('close');
const closed = echo.close();
await say('closing');
await closed;
await new Promise<void>((resolve) => process.send?.({ type: 'closed', left: awake() }, () => resolve()));
process.disconnect();
