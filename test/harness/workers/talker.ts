import { setInterval } from 'node:timers';
import { say } from './talker-words.js';

/** A worker for the harness's own specs: it greets, echoes, prints, and ends as it is told. */
function mark(target: object, _context: unknown): void {
  Object.assign(target, { marked: true });
}

class Greeter {
  constructor(readonly name: string) {}
}

class Decorated {
  @mark
  greet(): string {
    return say(new Greeter(process.argv[2] ?? 'nobody').name);
  }
}

const awake = setInterval(() => {}, 1_000);
process.on('message', (message: { type: string; text?: string; code?: number }) => {
  if (message.type === 'echo') process.send?.({ type: 'echoed', text: message.text });
  if (message.type === 'fail') throw new Error(message.text);
  if (message.type === 'exit') process.exit(message.code);
});
if (process.env.STUBBORN) process.on('SIGTERM', () => {});
console.log('talking');
process.send?.({
  type: 'ready',
  greeting: new Decorated().greet(),
  decorated: Object.hasOwn(Decorated.prototype, 'marked'),
});
awake.ref();
