// Plain JavaScript because jest does not map `./x.js` to `./x.ts` in a global setup; the loader does.
import '../../scripts/ts-loader/register.mjs';

/**
 * Looks for a server once, before the workers start, so that two workers never install or start the same thing at the same
 * time. They learn the outcome from the environment.
 */
export default async function setup() {
  const { findServer } = await import('../../scripts/server/index.ts');
  const { FOUND_SERVER } = await import('./found-server.ts');
  const server = await findServer();
  if (server.kind === 'process') {
    // It was only the proof that a server can be started: every spec file starts its own.
    await server.stop();
    process.env[FOUND_SERVER] = 'process';
  } else {
    process.env[FOUND_SERVER] = server.url;
    globalThis.stopSharedServer = server.stop;
  }
}
