import { show } from '../kernel/arguments.js';
import { EchoConfigError } from '../kernel/errors.js';

/** What is refused of a connection source: what the client library would read in a way that nobody has meant. */

/** What is looked at of a client's options. */
interface Options {
  readonly host?: unknown;
  readonly port?: unknown;
  readonly path?: unknown;
  readonly sentinels?: readonly unknown[] | null | undefined;
  readonly Connector?: unknown;
  readonly db?: unknown;
  readonly keyPrefix?: unknown;
}

/** Digits, as in a URL: the library reads a whole number from what only begins with one. */
const WHOLE = /^\d+$/;

/** @throws EchoConfigError for a scheme other than `redis:` and `rediss:`, no host, a database that is none, a `keyPrefix` */
export function checkUrl(text: string): void {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new EchoConfigError("option 'connection' is not a URL like redis://host:6379");
  }
  const { protocol, hostname, pathname, searchParams } = url;
  if (protocol !== 'redis:' && protocol !== 'rediss:') {
    throw new EchoConfigError(`option 'connection' must begin with redis:// or rediss://, not ${protocol}`);
  }
  if (!hostname && !searchParams.get('host') && !searchParams.get('path')) {
    throw new EchoConfigError(
      "option 'connection' is a URL without a host: say where the server is, it is never guessed",
    );
  }
  const db = pathname.length > 1 ? pathname.slice(1) : searchParams.getAll('db').at(-1);
  if (db !== undefined && !WHOLE.test(db)) {
    // Without what it is: behind a slash in a password, that is the rest of the password.
    throw new EchoConfigError(
      "option 'connection': the database of the URL, behind its host, must be a whole number from 0",
    );
  }
  if (/[?&]keyPrefix=/i.test(text)) refuseKeyPrefix({ keyPrefix: 'x' });
}

/** @throws EchoConfigError for options that do not say where the server is, a database that is none, a `keyPrefix` */
export function checkOptions(options: Options): void {
  refuseKeyPrefix(options);
  checkPlace(options);
  checkDb(options);
}

/** The same of what a client was made with; where its server is, is its business. @throws EchoConfigError */
export function checkClientOptions(options: Options): void {
  refuseKeyPrefix(options);
  checkDb(options);
}

/** @throws EchoConfigError */
export function refuseKeyPrefix({ keyPrefix }: Options): void {
  if (keyPrefix) {
    throw new EchoConfigError(
      "option 'connection' has a keyPrefix: it would be put before some keys and not before others. Use option 'prefix'",
    );
  }
}

/** The library would take localhost. A port alone may mean that; a host that is named and undefined was forgotten somewhere. */
function checkPlace(options: Options): void {
  if (options.host || options.path || options.sentinels?.length || options.Connector) return;
  const hasUrl = (options as { url?: unknown }).url !== undefined;
  if (options.port !== undefined && !('host' in options) && !hasUrl) return;
  const hint = hasUrl ? ". A URL is not one of them: give it as 'connection' itself" : '. It is never guessed';
  throw new EchoConfigError(
    `option 'connection' does not say where the server is: its options need host (or path, or sentinels)${hint}`,
  );
}

function checkDb({ db }: Options): void {
  if (db === undefined || (Number.isSafeInteger(db) && (db as number) >= 0)) return;
  if (typeof db === 'string' && WHOLE.test(db)) return; // as it comes from the environment; the library takes it
  throw new EchoConfigError(`option 'connection.db' must be a whole number from 0, got ${show(db)}`);
}
