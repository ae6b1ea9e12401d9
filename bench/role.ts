/** Second processes that a scenario needs: started as a fork of a file in roles/, they say what they do over IPC. */

import { type ChildProcess, fork } from 'node:child_process';
import type { LibraryName } from './adapters/adapter.js';

export interface RoleTask {
  library: LibraryName;
  url: string;
  queue: string;
  count?: number;
  everyMs?: number;
}

export interface Role {
  /** Resolves when the process says this word; rejects if it ends before. */
  said(word: string): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Waits for it to end by itself. */
  stop(): Promise<void>;
}

export function startRole(role: 'victim' | 'producer', task: RoleTask): Role {
  const child = fork(new URL(`./roles/${role}.js`, import.meta.url), [JSON.stringify(task)]);
  const words = new Set<string>();
  child.on('message', (word) => words.add(String(word)));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return {
    said: (word) =>
      new Promise((resolve, reject) => {
        if (words.has(word)) resolve();
        child.on('message', (said) => said === word && resolve());
        void ended.then(() => reject(new Error(`the ${role} process ended before it said '${word}'`)));
      }),
    async kill() {
      if (running(child)) child.kill('SIGKILL');
      await ended;
    },
    stop: () => ended,
  };
}

function running(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}
