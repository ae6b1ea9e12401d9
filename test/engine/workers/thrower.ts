import { EchoMq } from '../../../lib/core.js';

/** A process whose `onError` throws; it survives, as applications with a handler for that do, and says what it does. */
const [url] = process.argv.slice(2) as [string];

const say = (type: string, fields: object = {}) => process.send?.({ type, ...fields });
process.on('uncaughtException', (error) => say('uncaught', { text: error.message }));

const echo = await EchoMq.connect({
  connection: url,
  onError: () => {
    throw new Error('onError threw');
  },
});
echo.consume('q', {}, (job) => {
  say('ran', { name: job.name });
});
process.on('message', () => {
  echo.close().then(() => {
    say('closed');
    process.disconnect();
  });
});
say('ready');
