import { RedisProcess } from '../../../scripts/server/redis-process.js';

/** Starts a server, says where it is, and then ends in the way that its argument names, or stays. */
const server = await RedisProcess.start();
const [, dir] = (await server.command('CONFIG', 'GET', 'dir')) as [string, string];
process.send?.({ type: 'started', port: server.port, dir });
switch (process.argv[2]) {
  case 'exit':
    process.exit(0);
    break;
  case 'throw':
    throw new Error('uncaught');
  case 'stay':
    process.on('message', () => {});
}
