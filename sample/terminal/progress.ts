import cliProgress from 'cli-progress';
import type { Audit } from '../audits/audit.js';

const LOOK_EVERY_MS = 100;

/** Shows how far an audit is, until it is over: a bar in a terminal, a line for every tenth in a file or a pipe. */
export async function showProgress(audit: Audit): Promise<void> {
  const show = process.stdout.isTTY ? bar(audit) : lines(audit);
  show.look();
  const ticker = setInterval(() => show.look(), LOOK_EVERY_MS);
  await audit.over;
  clearInterval(ticker);
  show.look();
  show.end();
}

interface Display {
  look(): void;
  end(): void;
}

function bar(audit: Audit): Display {
  const format = '  [{bar}] {percentage}%  {value}/{total} documents';
  const shown = new cliProgress.SingleBar({ format, hideCursor: true }, cliProgress.Presets.rect);
  shown.start(audit.files, 0);
  return { look: () => shown.update(audit.ended), end: () => shown.stop() };
}

function lines(audit: Audit): Display {
  let next = 0;
  return {
    look: () => {
      const tenths = Math.floor((audit.ended / audit.files) * 10);
      if (tenths < next) return;
      next = tenths + 1;
      console.log(`  ${audit.ended}/${audit.files} documents`);
    },
    end: () => {},
  };
}
