import { connect } from 'node:net';
import { text } from '../../../lib/wire/reply.js';
import { Exchange } from '../../../lib/wire/resp/exchange.js';

/** A process that throws when it is told of answers, and says what it was told all the same. */
const url = new URL(process.argv[2]!);

const say = (type: string, fields: object) => process.send?.({ type, ...fields });
const errors: string[] = [];
process.on('uncaughtException', (error) => errors.push(error.message));

const socket = connect(Number(url.port), url.hostname);
await new Promise((resolve) => socket.once('connect', resolve));
const exchange = new Exchange(socket);

const told: string[] = [];
const fails = (what: string) => () => {
  told.push(what);
  throw new Error(`on ${what}`);
};
const tells = (what: string) => () => {
  told.push(what);
};

await new Promise<void>((resolve) => {
  exchange.send('PING', [], fails('PONG'), tells('no answer'));
  exchange.send('NONE', [], tells('no refusal'), fails('ERR'));
  exchange.send('PING', [], (reply) => told.push(text(reply)), tells('no answer'));
  exchange.send('ECHO', ['last'], (reply) => resolve(void told.push(text(reply))), tells('no answer'));
});
say('answered', { told: told.splice(0) });

await new Promise<void>((resolve) => {
  exchange.send('BLPOP', ['none', 0], tells('answered'), fails('first'));
  exchange.send('PING', [], tells('answered'), tells('second'));
  exchange.send('PING', [], tells('answered'), () => resolve(void told.push('third')));
  socket.destroy();
});
say('ended', { told });
setImmediate(() => {
  say('uncaught', { errors });
  process.disconnect();
});
