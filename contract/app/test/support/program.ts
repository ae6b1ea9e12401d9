import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach } from '@jest/globals';
import { until } from './until.js';

/** A program of the compiled app, as a process. */
export class Program {
  private output = '';
  private readonly ended: Promise<unknown[]>;

  constructor(readonly child: ChildProcess) {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    this.ended = once(child, 'close');
  }

  /** The lines it printed so far, errors among them. */
  get lines(): string[] {
    return this.output.split('\n').filter((line) => line !== '');
  }

  async printed(line: string): Promise<void> {
    const there = () => this.lines.includes(line) || this.child.exitCode !== null;
    await until(there, { what: `"${line}" of a program that printed: ${this.output}`, timeoutMs: 20_000 });
    if (!this.lines.includes(line)) throw new Error(`it ended before it printed "${line}":\n${this.output}`);
  }

  /** Waits for it to end by itself, and answers how: its exit code, or the signal. */
  async end(): Promise<unknown> {
    let how: unknown[] | undefined;
    this.ended.then((answer) => {
      how = answer;
    });
    await until(() => how !== undefined, { what: 'the program to end', timeoutMs: 20_000 });
    return how?.[0] ?? how?.[1];
  }
}

/** Starts programs by name, in the folder of the app, and kills what a test leaves running. Call it before `guardLeaks()`. */
export function usePrograms(): (name: string, ...args: string[]) => Program {
  const running: Program[] = [];
  afterEach(async () => {
    for (const program of running.splice(0)) {
      program.child.kill('SIGKILL');
      await program.end();
    }
  });
  return (name, ...args) => {
    const file = `dist/programs/${name}.js`;
    // Named, because a program would otherwise get the environment that jest itself was started with.
    const env = { ...process.env };
    const program = new Program(spawn(process.execPath, [file, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] }));
    running.push(program);
    return program;
  };
}
