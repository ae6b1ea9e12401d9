import { type ConsumerOptions, EchoMq } from '../../../lib/core.js';

/** A process that consumes one queue, says what it does, and misbehaves where a job's data tells it to. */
const [url, queue, options] = process.argv.slice(2) as [string, string, string];

type Misdeed = { do?: 'suicide' | 'block' | 'hang' | 'return'; ms?: number };

/** Resolves once it is on its way: what happens next may be the end of this process. */
const say = (type: string, fields: object = {}) =>
  new Promise<void>((resolve) => {
    process.send?.({ type, ...fields }, () => resolve());
  });

const echo = await EchoMq.connect({ connection: url, onError: (error) => say('fault', { text: error.message }) });
const consumer = echo.consume(queue, JSON.parse(options) as ConsumerOptions, async (job) => {
  const { do: deed, ms = 0 } = (job.data ?? {}) as Misdeed;
  await say('started', { id: job.id, attempts: job.attempts });
  if (deed === 'suicide') process.kill(process.pid, 'SIGKILL');
  if (deed === 'block') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  if (deed === 'hang') await new Promise<void>((resolve) => process.once('message', () => resolve()));
  return process.pid;
});
consumer.on('completed', (job) => say('completed', { id: job.id, attempts: job.attempts }));
consumer.on('lease-lost', (job, why) => say('lease-lost', { id: job.id, attempts: job.attempts, why }));
process.on('message', (message: { type: string }) => {
  if (message.type === 'close') {
    echo.close().then(() => {
      say('closed');
      process.disconnect(); // the channel to the test is all that keeps this process awake now
    });
  }
});
say('ready');
