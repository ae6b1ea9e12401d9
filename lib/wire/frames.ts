/** One thing that happened to a job, as a step has published it. */
export interface EventFrame {
  readonly event: string;
  readonly id: string;
  /** Claims so far. */
  readonly attempts: number;
  /** What the event says beyond that; empty also where it was too long to be sent. */
  readonly text: Buffer;
}

const BLANK = 0x20;
const HEAD = /^([a-z]+) (\S+) (\d{1,16}) (\d{1,16})$/;

/**
 * Reads a message of the channel of events: frames `event id attempts n text`, a line feed between two. The text may hold
 * anything, which is why its length in bytes stands before it. What is no such frame ends the reading.
 */
export function readFrames(message: Buffer): EventFrame[] {
  const frames: EventFrame[] = [];
  for (let at = 0; at < message.length; ) {
    const begin = textAt(message, at);
    const head = begin === undefined ? null : HEAD.exec(message.toString('latin1', at, begin - 1));
    if (head === null) break;
    const end = begin! + Number(head[4]);
    if (end > message.length) break;
    frames.push({ event: head[1]!, id: head[2]!, attempts: Number(head[3]), text: message.subarray(begin, end) });
    at = end + 1;
  }
  return frames;
}

/** Behind the fourth blank. */
function textAt(message: Buffer, from: number): number | undefined {
  let at = from;
  for (let blanks = 0; blanks < 4; blanks++) {
    const blank = message.indexOf(BLANK, at);
    if (blank < 0) return undefined;
    at = blank + 1;
  }
  return at;
}
