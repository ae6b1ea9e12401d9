import { RespSocket } from './resp-socket.js';

/** The image started unless ECHOMQ_TEST_IMAGE names another. */
export const DEFAULT_IMAGE = 'valkey/valkey:8.1';

const PORT = 6379;

/** A server in a container of our own. */
export interface ServerContainer {
  readonly url: string;
  readonly image: string;
  /** Stops and removes the container. */
  stop(): Promise<void>;
}

/**
 * Starts a server in a container and resolves once it answers PING from here.
 *
 * Testcontainers' own reaper removes the container should this process die first, unless TESTCONTAINERS_RYUK_DISABLED is set.
 *
 * @param image default: ECHOMQ_TEST_IMAGE, otherwise {@link DEFAULT_IMAGE}.
 * @throws Error naming the image when it cannot be pulled or started.
 */
export async function startContainer(image = process.env.ECHOMQ_TEST_IMAGE || DEFAULT_IMAGE): Promise<ServerContainer> {
  // Loaded only here: the library takes about a second to load, and most runs never need it.
  const { GenericContainer, Wait } = await import('testcontainers');
  try {
    const container = await new GenericContainer(image)
      .withExposedPorts(PORT)
      .withCommand(['--save', '', '--appendonly', 'no'])
      .withWaitStrategy(Wait.forLogMessage(/Ready to accept connections/))
      .start();
    const [host, port] = [container.getHost(), container.getMappedPort(PORT)];
    await RespSocket.with(host, port, (server) => server.command('PING'));
    return {
      url: `redis://${host}:${port}`,
      image,
      stop: async () => {
        await container.stop();
      },
    };
  } catch (error) {
    throw new Error(`the container of ${image} did not start: ${(error as Error).message}`, { cause: error });
  }
}
