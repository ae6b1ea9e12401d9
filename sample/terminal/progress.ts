import { setTimeout as sleep } from 'node:timers/promises';
import cliProgress from 'cli-progress';

const LOOK_EVERY_MS = 100;

export interface Progress {
  files: number;
  /** Asks how many of them are left. */
  outstanding(): Promise<number>;
  /** Settles when there is nothing left to look at. */
  over: Promise<unknown>;
}

/** Shows how far an audit is, until it is over: a bar in a terminal, a line for every tenth in a file or a pipe. */
export async function showProgress({ files, outstanding, over }: Progress): Promise<void> {
  const show = process.stdout.isTTY ? bar(files) : lines(files);
  let running = true;
  const stop = () => {
    running = false;
  };
  const ended = over.then(stop, stop); // how it ended is for others to tell
  try {
    while (running) {
      show.look(files - (await outstanding()));
      await Promise.race([ended, sleep(LOOK_EVERY_MS)]);
    }
    show.look(files);
  } finally {
    show.end();
  }
}

interface Display {
  look(ended: number): void;
  end(): void;
}

function bar(files: number): Display {
  const format = '  [{bar}] {percentage}%  {value}/{total} documents';
  const shown = new cliProgress.SingleBar({ format, hideCursor: true }, cliProgress.Presets.rect);
  shown.start(files, 0);
  return { look: (ended) => shown.update(ended), end: () => shown.stop() };
}

function lines(files: number): Display {
  let next = 0;
  return {
    look: (ended) => {
      const tenths = Math.floor((ended / files) * 10);
      if (tenths < next) return;
      next = tenths + 1;
      console.log(`  ${ended}/${files} documents`);
    },
    end: () => {},
  };
}
