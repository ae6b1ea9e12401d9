import { expectTypeOf } from 'expect-type';
import {
  type AddedFlow,
  type ChildrenReport,
  defineQueue,
  type EchoJobError,
  type FlowNode,
  type Flows,
  type FlowTree,
  flowNode,
  type Job,
  type Jobs,
  type Outcome,
  type ParentPolicy,
  type Queue,
} from 'nestjs-echomq';
import { z } from 'zod';

declare const flows: Flows;
declare const jobs: Jobs;
declare const job: Job;
const Mail = defineQueue<{ welcome: { to: string }; digest: { day: string }; ping: undefined }>('mail');
const Orders = defineQueue('orders', { paid: z.object({ amount: z.string().transform(Number) }) });

// What fits.
expectTypeOf(flowNode(Mail, 'welcome', { to: 'Ada' })).toEqualTypeOf<FlowNode>();
flowNode(Mail, 'ping', undefined);
flowNode(Orders, 'paid', { amount: '12' }, { opts: { parentPolicy: 'ignore', attempts: 3, delayMs: 5 } });
flowNode('any', 'name', { of: 'data' }, { children: [flowNode(Mail, 'digest', { day: 'Monday' })] });
expectTypeOf(flows.add(flowNode(Mail, 'welcome', { to: 'Ada' }))).toEqualTypeOf<Promise<AddedFlow>>();
expectTypeOf(flows.addMany([flowNode(Mail, 'ping', undefined)])).toEqualTypeOf<Promise<AddedFlow[]>>();
expectTypeOf<ParentPolicy>().toEqualTypeOf<'fail' | 'ignore' | 'continue' | 'hold'>();

// @ts-expect-error the queue has no such job
flowNode(Mail, 'welcom', { to: 'Ada' });
// @ts-expect-error welcome's data has a `to`
flowNode(Mail, 'welcome', { day: 'Monday' });
// @ts-expect-error of the right type
flowNode(Mail, 'welcome', { to: 1 });
// @ts-expect-error and nothing else
flowNode(Mail, 'welcome', { to: 'Ada', cc: 'Bob' });
// @ts-expect-error its data is missing
flowNode(Mail, 'welcome');
// @ts-expect-error a ping has no data
flowNode(Mail, 'ping', { to: 'Ada' });
// @ts-expect-error what is sent is the schema's input, not its output
flowNode(Orders, 'paid', { amount: 12 });
// @ts-expect-error that is no policy
flowNode(Mail, 'ping', undefined, { opts: { parentPolicy: 'wait' } });
// @ts-expect-error that is no option
flowNode(Mail, 'ping', undefined, { opts: { delay: 5 } });
// @ts-expect-error its parent would wait for another job
flowNode(Mail, 'ping', undefined, { opts: { dedup: { key: 'k' } } });
// @ts-expect-error the name is said once
flowNode(Mail, 'ping', undefined, { name: 'digest' });
// @ts-expect-error children are nodes
flowNode(Mail, 'ping', undefined, { children: ['ping'] });
// @ts-expect-error a node has a name
flows.add({ queue: Mail });
// @ts-expect-error and no parent of its own
flows.add({ queue: Mail, name: 'ping', parent: 'JOB00000000000' });

// Reads, and what a handler can do.
export async function read(queue: string | Queue, id: string): Promise<void> {
  expectTypeOf(await flows.children(queue, id)).toEqualTypeOf<ChildrenReport>();
  expectTypeOf(await flows.childrenValues(queue, id)).toEqualTypeOf<Record<string, unknown>>();
  expectTypeOf(await flows.ignoredFailures(queue, id)).toEqualTypeOf<Record<string, string>>();
  expectTypeOf(await flows.failures(queue, id)).toEqualTypeOf<Record<string, string>>();
  expectTypeOf(await flows.dependencies(queue, id)).toBeNumber();
  expectTypeOf(await flows.tree(queue, id, { depth: 2, limit: 10 })).toEqualTypeOf<FlowTree>();
  expectTypeOf(await jobs.remove(queue, id, { tree: true })).toEqualTypeOf<Outcome>();
  await jobs.cancel(queue, id, { tree: true });
  const { outstanding, values } = await job.children();
  expectTypeOf(outstanding).toBeNumber();
  // @ts-expect-error what children answered is read, not written
  values.JOB00000000000 = 1;
  await job.addChildren([flowNode(Mail, 'welcome', { to: 'Ada' })]);
  // @ts-expect-error several at once
  await job.addChildren(flowNode(Mail, 'welcome', { to: 'Ada' }));
}

// Waiting.
export async function wait(id: string): Promise<void> {
  expectTypeOf(await jobs.wait(Mail, id)).toBeUnknown();
  expectTypeOf(await jobs.result(Mail, id)).toBeUnknown();
  await jobs.wait('mail', id, { timeoutMs: 5 });
  expectTypeOf(await jobs.enqueueAndWait(Mail, 'welcome', { to: 'Ada' })).toBeUnknown();
  await jobs.enqueueAndWait(Mail, 'ping', undefined, { timeoutMs: 5, handlerTimeoutMs: 5, priority: 1 });
  await jobs.enqueueAndWait('mail', 'anything', [1]);
  // @ts-expect-error the queue has no such job
  await jobs.enqueueAndWait(Mail, 'welcom', { to: 'Ada' });
  // @ts-expect-error welcome's data has a `to`
  await jobs.enqueueAndWait(Mail, 'welcome', { day: 'Monday' });
  // @ts-expect-error that is no option
  await jobs.enqueueAndWait(Mail, 'ping', undefined, { timeout: 5 });
  // @ts-expect-error a wait has no priority
  await jobs.wait(Mail, id, { priority: 1 });
}
expectTypeOf<EchoJobError['code']>().toBeString();
expectTypeOf<EchoJobError>().toHaveProperty('jobId');
