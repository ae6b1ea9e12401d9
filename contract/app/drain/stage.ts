/** A promise and the way to settle it. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** Lets whatever can happen without us happen: a number of turns of the event loop, socket reads included. */
export async function turns(count = 50): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((next) => setImmediate(next));
}

/** One handler and one shutdown, and what happened in which order. Providers of many apps write to it: it is one per process. */
class Stage {
  readonly lines: string[] = [];
  handlerRuns = gate();
  handlerMayEnd = gate();
  /** Hears every line as it is written. */
  onLine: (line: string) => void = () => {};

  clear(): void {
    this.lines.length = 0;
    this.handlerRuns = gate();
    this.handlerMayEnd = gate();
  }

  write(line: string): void {
    this.lines.push(line);
    this.onLine(line);
  }
}

export const stage = new Stage();
