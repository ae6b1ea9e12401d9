import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/**
 * The shell reads pids, one a line, from a pipe that only our process holds open. However our process ends (exit, a signal,
 * an uncaught error, even SIGKILL), the kernel closes the pipe, and the shell kills the last pid and removes the folder.
 */
const WATCH = 'pid=; while read -r next; do pid=$next; done; [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null; rm -rf "$1"';

/**
 * Ties a server process and its folder to the life of this process.
 *
 * Handlers for `exit`, SIGINT and SIGTERM were rejected: they change how the host process treats signals (a sample that
 * drains on Ctrl-C, a jest worker), and nothing runs them on SIGKILL, which jest sends to a worker that hangs.
 */
export class LifeLine {
  private readonly watcher: ChildProcess;
  private readonly pipe: Socket;

  /** @param folder removed, with all it holds, once this process is gone or {@link end} was called. */
  constructor(folder: string) {
    // Detached: a Ctrl-C in the terminal must not end the watcher before the process it watches.
    this.watcher = spawn('sh', ['-c', WATCH, 'sh', folder], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    this.pipe = this.watcher.stdin as Socket;
    this.watcher.on('error', () => {});
    this.pipe.on('error', () => {});
    this.watcher.unref();
    this.pipe.unref();
  }

  /** From now on this is the process to kill; undefined: none. */
  hold(pid: number | undefined): void {
    this.pipe.write(`${pid ?? ''}\n`);
  }

  /** Lets the held process go on its own; the folder is removed. */
  end(): void {
    this.pipe.end('\n');
  }
}
