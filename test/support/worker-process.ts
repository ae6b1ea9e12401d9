import { type ChildProcess, spawn } from 'node:child_process';
import { resolve as resolvePath } from 'node:path';
import { afterEach } from '@jest/globals';

/** A message of a worker: its type, and whatever goes with it. */
export interface WorkerMessage {
  type: string;
  [field: string]: unknown;
}

/** How a worker is started. */
export interface WorkerOptions {
  /** Arguments of the program. */
  args?: readonly string[];
  /** Added to this process's environment. */
  env?: Record<string, string>;
}

/**
 * How long a worker may take to answer or to end, in ms, before {@link WorkerProcess.next} and `stop` give up. It compiles its sources
 * first: a second on a quiet machine, and many on one that does much else.
 */
const PATIENCE_MS = 60_000;

const running = new Set<WorkerProcess>();

/**
 * A program of ours in a real child process, to be killed as the real world kills. It speaks by `process.send({ type, ... })`
 * and hears by `process.on('message')`.
 */
export class WorkerProcess {
  private readonly unread: WorkerMessage[] = [];
  private readonly listeners = new Set<() => void>();
  private output = '';
  private ended: string | undefined;
  private readonly closed: Promise<void>;

  constructor(
    private readonly child: ChildProcess,
    private readonly file: string,
  ) {
    const collect = (bytes: Buffer) => {
      this.output = (this.output + bytes).slice(-20_000);
    };
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    child.on('message', (message) => {
      this.unread.push(message as WorkerMessage);
      this.notify();
    });
    this.closed = new Promise((resolve) => {
      const end = (how: string) => {
        this.ended ??= how;
        running.delete(this);
        this.notify();
        resolve();
      };
      child.once('error', (error) => end(error.message));
      // `close`, not `exit`: only then has all of its output, and have all of its messages, been read.
      child.once('close', (code, signal) => end(`it ended with ${signal ?? code}`));
    });
    running.add(this);
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** What it printed so far, stdout and stderr together (the last 20,000 characters). */
  get printed(): string {
    return this.output;
  }

  /**
   * The oldest unread message of this type; waits for one to come. Messages of other types stay unread.
   *
   * @throws Error with what the worker printed, when it ends first or nothing comes within `timeoutMs` (default 60,000).
   */
  next<T extends WorkerMessage = WorkerMessage>(type: string, timeoutMs = PATIENCE_MS): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = (outcome: () => void) => {
        clearTimeout(timer);
        this.listeners.delete(look);
        outcome();
      };
      const look = () => {
        const index = this.unread.findIndex((message) => message.type === type);
        if (index >= 0) settle(() => resolve(this.unread.splice(index, 1)[0] as T));
        else if (this.ended) settle(() => reject(this.failure(`said no "${type}": ${this.ended}`)));
      };
      const timer = setTimeout(() => {
        settle(() => reject(this.failure(`said no "${type}" within ${timeoutMs} ms`)));
      }, timeoutMs);
      this.listeners.add(look);
      look();
    });
  }

  /** Sends the worker a message. */
  send(message: WorkerMessage): void {
    this.child.send(message);
  }

  /** SIGKILL; resolves once the process is gone. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.closed;
  }

  /**
   * SIGTERM, and waits for the worker to end by itself.
   *
   * @throws Error with what it printed, when it takes more than `timeoutMs` (default 60,000; it is then killed) or exits with a code but 0.
   */
  async stop(timeoutMs = PATIENCE_MS): Promise<void> {
    this.child.kill('SIGTERM');
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.child.kill('SIGKILL');
    }, timeoutMs);
    await this.closed;
    clearTimeout(timer);
    if (late) throw this.failure(`did not stop within ${timeoutMs} ms of SIGTERM`);
    // A worker that installs no handler dies of the signal, which is as good an end as code 0.
    if (this.child.exitCode !== 0 && this.child.signalCode !== 'SIGTERM')
      throw this.failure(`stopped badly: ${this.ended}`);
  }

  private notify(): void {
    for (const look of [...this.listeners]) look();
  }

  private failure(what: string): Error {
    return new Error(`worker ${this.file} ${what}\n${this.output || '(it printed nothing)'}`);
  }
}

/**
 * Starts a TypeScript or JavaScript file as a process of its own; imports of `nestjs-echomq` mean this repository's sources. Workers
 * that a test leaves running are killed by {@link endWorkers}.
 *
 * @param file path from the repository's root.
 */
export function spawnWorker(file: string, options: WorkerOptions = {}): WorkerProcess {
  const program = ['--import', './scripts/ts-loader/register.mjs', resolvePath(file), ...(options.args ?? [])];
  const child = spawn(process.execPath, ['--enable-source-maps', ...program], {
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  return new WorkerProcess(child, file);
}

/** Kills after each test the workers it left running. Call it in a spec that spawns workers, before `guardLeaks()`. */
export function endWorkers(): void {
  afterEach(async () => {
    await Promise.all([...running].map((worker) => worker.kill()));
  });
}
