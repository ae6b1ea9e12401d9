import type { Cluster, Redis } from 'ioredis';

/**
 * One key of a dump, tagged with its type. Text that is not UTF-8 appears as `base64!` and its base64. `expires` is there,
 * and true, only on a key that has an expiry: the milliseconds left would differ from run to run.
 */
export type DumpedKey = (
  | { string: string }
  | { hash: Record<string, string> }
  | { zset: [member: string, score: number][] }
  | { set: string[] }
  | { list: string[] }
  | { stream: [id: string, fields: Record<string, string>][] }
  | { other: string }
) & { expires?: true };

/** Every key of one queue: its name without the queue's base (`pending`, `job:JOB...`, `metrics:enqueued`) to what it holds. */
export type QueueDump = Record<string, DumpedKey>;

/**
 * Reads everything inside one script, so the dump is one moment of the server even while workers run. With SCAN and a read per
 * key, a job on its way from one set to another would be seen in both, or in neither.
 */
const READ_ALL = `
local keys = redis.call('KEYS', ARGV[1])
local read = {
  string = function(key) return { redis.call('GET', key) } end,
  hash = function(key) return redis.call('HGETALL', key) end,
  zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
  set = function(key) return redis.call('SMEMBERS', key) end,
  list = function(key) return redis.call('LRANGE', key, 0, -1) end,
  stream = function(key) return redis.call('XRANGE', key, '-', '+') end,
}
local dump = {}
for i, key in ipairs(keys) do
  local kind = redis.call('TYPE', key).ok
  dump[i] = { key, kind, redis.call('PTTL', key), read[kind] and read[kind](key) or {} }
end
return dump`;

type Raw = Buffer | Raw[];

/**
 * The whole of one queue as plain data, equal for equal contents: keys, hash fields and set members sorted, sorted sets, lists
 * and streams in the server's order.
 *
 * @param client any open client, of a single server or a cluster.
 * @param prefix the connector's prefix. Default `emq`.
 */
export async function dumpQueue(client: Redis | Cluster, queue: string, prefix = 'emq'): Promise<QueueDump> {
  const base = `${prefix}:{${queue}}:`;
  const keys = (await client.callBuffer('EVAL', READ_ALL, 1, `${base}pending`, `${literal(base)}*`)) as Raw[];
  const entries = keys.map((raw): [string, DumpedKey] => {
    const [key, kind, ttlMs, value] = raw as [Buffer, Buffer, number, Raw[]];
    const dumped = decode(kind.toString(), value);
    return [text(key).slice(base.length), Number(ttlMs) >= 0 ? { ...dumped, expires: true } : dumped];
  });
  return Object.fromEntries(entries.sort(byFirst));
}

function decode(kind: string, value: Raw[]): DumpedKey {
  const texts = () => (value as Buffer[]).map(text);
  switch (kind) {
    case 'string':
      return { string: text(value[0] as Buffer) };
    case 'hash':
      return { hash: Object.fromEntries(pairs(texts()).sort(byFirst)) };
    case 'zset':
      return { zset: pairs(texts()).map(([member, score]) => [member, toScore(score)]) };
    case 'set':
      return { set: texts().sort() };
    case 'list':
      return { list: texts() };
    case 'stream':
      return {
        stream: (value as [Buffer, Buffer[]][]).map(([id, fields]) => [
          text(id),
          Object.fromEntries(pairs(fields.map(text)).sort(byFirst)),
        ]),
      };
    default:
      return { other: kind };
  }
}

const MARK = 'base64!';

/** Text that happens to begin with the mark is shown in base64 as well, so that no two values look the same. */
function text(bytes: Buffer): string {
  const decoded = bytes.toString('utf8');
  const faithful = Buffer.from(decoded, 'utf8').equals(bytes) && !decoded.startsWith(MARK);
  return faithful ? decoded : MARK + bytes.toString('base64');
}

function toScore(shown: string): number {
  return /inf/.test(shown) ? (shown.startsWith('-') ? -Infinity : Infinity) : Number(shown);
}

function pairs(flat: string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, index) => [flat[2 * index]!, flat[2 * index + 1]!]);
}

function byFirst(a: [string, unknown], b: [string, unknown]): number {
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
}

/** A queue may be called `[a]*`; in a pattern that must stand for itself. */
function literal(name: string): string {
  return name.replace(/[*?[\]\\^]/g, '\\$&');
}
