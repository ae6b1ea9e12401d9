import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findBinary } from './binary.js';
import { freePort } from './free-port.js';
import { LifeLine } from './life-line.js';
import { type Reply, RespSocket } from './resp-socket.js';
import { until } from './until.js';

/** How a private server is started. */
export interface RedisProcessOptions {
  /** Lines of redis.conf: name to value as it would stand in the file; an array repeats the line. */
  config?: Record<string, string | readonly string[]>;
  /** Keep an append-only file, so that {@link RedisProcess.restart} finds all data that was answered for. Default false. */
  appendonly?: boolean;
  /** Fixed port. Default: a free one, drawn again on a clash. */
  port?: number;
  /** Program to run. Default: the first of valkey-server, redis-server on `PATH`. */
  binary?: string;
  /** Run as a Sentinel instead of a data server. Default false. */
  sentinel?: boolean;
}

const HOST = '127.0.0.1';
const START_MS = 10_000;
const STOP_MS = 5_000;

/**
 * A server of our own on 127.0.0.1, with its data in a fresh temporary folder. It never outlives this process, and does not
 * keep it alive either.
 */
export class RedisProcess {
  readonly host = HOST;
  private child: ChildProcess | undefined;
  private stopped = false;

  private constructor(
    readonly port: number,
    private readonly dir: string,
    private readonly options: RedisProcessOptions,
    private readonly lifeLine: LifeLine,
  ) {}

  /**
   * Starts a server and resolves once it answers PING (about 20 ms).
   *
   * @throws Error when there is no program to run, or with the end of the server's log when it does not come up.
   */
  static async start(options: RedisProcessOptions = {}): Promise<RedisProcess> {
    for (let attempt = 1; ; attempt++) {
      const port = options.port ?? (await freePort());
      const dir = await mkdtemp(join(tmpdir(), 'echomq-server-'));
      const server = new RedisProcess(port, dir, options, new LifeLine(dir));
      try {
        await writeFile(server.configFile, configText(port, dir, options));
        await server.launch();
        return server;
      } catch (error) {
        await server.stop();
        const clash = /address already in use/i.test(String(error));
        if (!clash || options.port !== undefined || attempt === 5) throw error;
      }
    }
  }

  /** `redis://...`, with the password when `requirepass` was configured. */
  get url(): string {
    const password = this.password;
    return `redis://${password ? `:${encodeURIComponent(password)}@` : ''}${HOST}:${this.port}`;
  }

  /** The server's process id; undefined while it is not running. */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Shuts the server down as its operator would, and removes its folder. May be called twice. */
  async stop(): Promise<void> {
    if (this.stopped) return;
    this.stopped = true;
    await this.shutDown();
    await rm(this.dir, { recursive: true, force: true });
    this.lifeLine.end();
  }

  /** SIGKILL. Resolves once the process is gone; folder and port are kept for {@link restart}. */
  async kill(): Promise<void> {
    this.child?.kill('SIGKILL');
    await this.gone();
  }

  /** The same port, folder and configuration again, after a shutdown if it still runs; an append-only file is loaded. */
  async restart(): Promise<void> {
    if (this.stopped) throw new Error('this server was stopped and its data removed: start a new one');
    await this.shutDown();
    await this.launch();
  }

  /** SIGSTOP: the server stays connected and stops answering. */
  pause(): void {
    this.child?.kill('SIGSTOP');
  }

  /** SIGCONT: undoes {@link pause}. */
  resume(): void {
    this.child?.kill('SIGCONT');
  }

  /** Runs one command on a connection of its own, and resolves with its answer. */
  command(...args: (string | number)[]): Promise<Reply> {
    return RespSocket.with(HOST, this.port, async (server) => {
      if (this.password) await server.command('AUTH', this.password);
      return server.command(...args);
    });
  }

  /** The last lines of the server's log, for messages. */
  async log(): Promise<string> {
    const text = await readFile(join(this.dir, 'server.log'), 'utf8').catch(() => '');
    return text.trimEnd().split('\n').slice(-20).join('\n');
  }

  private get configFile(): string {
    return join(this.dir, 'server.conf');
  }

  private get password(): string | undefined {
    const value = this.options.config?.requirepass;
    return typeof value === 'string' ? value : undefined;
  }

  private async launch(): Promise<void> {
    const binary = this.options.binary ?? findBinary();
    if (!binary) throw new Error('no valkey-server or redis-server on PATH');
    const log = openSync(join(this.dir, 'server.log'), 'a');
    const args = this.options.sentinel ? [this.configFile, '--sentinel'] : [this.configFile];
    // Detached: Ctrl-C reaches the process that uses the server, which may want to drain first; the life line does the rest.
    const child = spawn(binary, args, { stdio: ['ignore', log, log], detached: true });
    closeSync(log);
    this.child = child;
    const ended = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('exit', (code, signal) => resolve(`it exited with ${signal ?? code}`));
    });
    ended.then(() => {
      if (this.child === child) this.child = undefined;
    });
    this.lifeLine.hold(child.pid);
    const ready = until(() => this.child !== child || this.answers(), { timeoutMs: START_MS, what: 'PING' });
    await Promise.race([ready, ended]).catch(() => {});
    if (this.child !== child || !(await this.answers())) {
      const reason = this.child === child ? `no answer within ${START_MS} ms` : await ended;
      throw new Error(`${binary} did not start on port ${this.port}: ${reason}\n${await this.log()}`);
    }
    child.unref();
  }

  /** A PING alone would also be answered by a stranger who took the port first, so the pid is compared. */
  private async answers(): Promise<boolean> {
    try {
      return String(await this.command('INFO', 'server')).includes(`process_id:${this.child?.pid}\r`);
    } catch {
      return false; // refused, or still loading
    }
  }

  private async shutDown(): Promise<void> {
    const child = this.child;
    if (!child) return;
    child.ref();
    child.kill('SIGCONT');
    // SIGTERM is looked at only ten times a second; the command acts at once. It is answered by the connection's end.
    this.command('SHUTDOWN').catch((error: Error) => {
      if (!/closed|ECONN/.test(error.message)) child.kill('SIGTERM');
    });
    const hardStop = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await this.gone();
    clearTimeout(hardStop);
  }

  private async gone(): Promise<void> {
    const child = this.child;
    if (!child) return;
    child.ref();
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    this.child = undefined;
    this.lifeLine.hold(undefined);
  }
}

function configText(port: number, dir: string, options: RedisProcessOptions): string {
  // At its default the server may answer before it has written, while a slow disk keeps it: a kill would then lose the data.
  const data = { save: '""', appendonly: options.appendonly ? 'yes' : 'no', appendfsync: 'always' };
  const lines = { port: String(port), bind: HOST, dir, 'protected-mode': 'no', ...(options.sentinel ? {} : data) };
  return Object.entries({ ...lines, ...options.config })
    .flatMap(([name, value]) => (typeof value === 'string' ? [value] : value).map((one) => `${name} ${one}\n`))
    .join('');
}
