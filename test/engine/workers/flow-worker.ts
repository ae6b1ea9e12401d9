import { type ConnectionSource, Discard, EchoMq, type FlowNode, type Job, WaitForChildren } from '../../../lib/core.js';

/** A process that consumes the queues it is told, adds flows, and holds jobs until it is told to go on; it says what it does. */
const [connection] = process.argv.slice(2).map((arg) => JSON.parse(arg)) as [ConnectionSource];

type Order =
  | { type: 'consume'; queues: string[] }
  | { type: 'hold' }
  | { type: 'go' }
  | { type: 'land'; flow: FlowNode };

const say = (type: string, fields: object = {}) =>
  new Promise<void>((resolve) => {
    process.send?.({ type, ...fields }, () => resolve());
  });

const echo = await EchoMq.connect({ connection, onError: (error) => say('fault', { text: error.message }) });
const held = new Set<() => void>();
let holds = false;

/** `hold`: may have to wait. `die`: is buried. `grow`: adds these children, unless it has some, and waits for them. */
async function handle(job: Job): Promise<unknown> {
  const { hold, die, grow } = (job.data ?? {}) as { hold?: boolean; die?: boolean; grow?: FlowNode[] };
  if (hold && holds) {
    const told = new Promise<void>((resolve) => held.add(resolve));
    await say('held');
    await told;
  }
  if (die) throw new Discard('told to');
  if (grow) {
    const { outstanding, values } = await job.children();
    if (outstanding + Object.keys(values).length === 0) await job.addChildren(grow);
    if (Object.keys(values).length < grow.length) throw new WaitForChildren();
  }
  return job.name;
}

process.on('message', (order: Order) => {
  if (order.type === 'consume') {
    for (const queue of order.queues) echo.consume(queue, { leaseMs: 60_000 }, handle);
  } else if (order.type === 'hold') {
    holds = true;
    say('holds');
  } else if (order.type === 'go') {
    holds = false;
    for (const goOn of held) goOn();
    held.clear();
  } else {
    echo.flows.add(order.flow).then(() => say('landed'));
  }
});
say('ready');
