import type { JobsOf, NamesOf, Queue } from '../kernel/queue.js';
import type { EnqueueOptions } from './enqueue-options.js';
import type { Job } from './job.js';

/** What the compiler derives from a queue's definition. */

/** Jobs by these names and data; of several names a union that `job.name` tells apart. */
export type JobNamed<Outputs, Name extends NamesOf<Outputs> = NamesOf<Outputs>> = {
  [N in Name]: Job<Outputs[N], N>;
}[Name];

/** A job of the queue as its handler gets it: `JobOf<typeof Mail, 'welcome'>`; without a name the union of all. */
export type JobOf<Of extends Queue, Name extends NamesOf<JobsOf<Of>> = NamesOf<JobsOf<Of>>> = JobNamed<
  JobsOf<Of>,
  Name
>;

/** What enqueue takes for a queue, by the name of the job; by the queue's bare name anything. */
type InputsOf<Of extends string | Queue> = Of extends Queue ? Of['~types']['inputs'] : Record<string, unknown>;

/** Data of any job of the queue. */
export type AnyDataFor<Of extends string | Queue> = InputsOf<Of>[keyof InputsOf<Of>];

/** A conditional type, because the compiler then shows the names themselves where one is wrong. */
export type NameFor<Of extends string | Queue> = Of extends Queue ? keyof InputsOf<Of> & string : string;

/** What enqueue takes behind the name: data that may be undefined may be left out. */
export type DataArguments<Of extends string | Queue, Name extends string, Options = EnqueueOptions> =
  undefined extends DataFor<InputsOf<Of>, Name>
    ? [data?: DataFor<InputsOf<Of>, Name>, opts?: Options | undefined]
    : [data: DataFor<InputsOf<Of>, Name>, opts?: Options | undefined];

/** One of many jobs to enqueue, its data that of its name. */
export type EntryFor<Of extends string | Queue> = EntryNamed<InputsOf<Of>>;

type EntryNamed<Inputs> = {
  [N in keyof Inputs & string]: undefined extends Inputs[N]
    ? { name: N; data?: Inputs[N]; opts?: EnqueueOptions | undefined }
    : { name: N; data: Inputs[N]; opts?: EnqueueOptions | undefined };
}[keyof Inputs & string];

/** Under a name that may be one or the other, only data that does for both: an intersection, not `Inputs[Name]`. */
type DataFor<Inputs, Name extends string> = {
  [N in Name & keyof Inputs]: (data: Inputs[N]) => void;
}[Name & keyof Inputs] extends (data: infer Data) => void
  ? Data
  : never;
