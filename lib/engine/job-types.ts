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

/** What enqueue takes behind the name: data that may be undefined may be left out. */
export type DataArguments<Inputs, Name extends NamesOf<Inputs>> =
  undefined extends DataFor<Inputs, Name>
    ? [data?: DataFor<Inputs, Name>, opts?: EnqueueOptions]
    : [data: DataFor<Inputs, Name>, opts?: EnqueueOptions];

/** One of many jobs to enqueue, its data that of its name. */
export type EntryFor<Inputs> = {
  [N in NamesOf<Inputs>]: undefined extends Inputs[N]
    ? { name: N; data?: Inputs[N]; opts?: EnqueueOptions }
    : { name: N; data: Inputs[N]; opts?: EnqueueOptions };
}[NamesOf<Inputs>];

/** Under a name that may be one or the other, only data that does for both: an intersection, not `Inputs[Name]`. */
type DataFor<Inputs, Name extends NamesOf<Inputs>> = {
  [N in Name]: (data: Inputs[N]) => void;
}[Name] extends (data: infer Data) => void
  ? Data
  : never;
