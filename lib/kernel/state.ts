/** The states of a job, as its row spells them. A state is the set the job stands in; `done` stands in none. */
export const JOB_STATES = ['pending', 'active', 'scheduled', 'dead', 'awaiting_children', 'done'] as const;

export type JobState = (typeof JOB_STATES)[number];

/** The states whose members stand in a set of their own, and so can be listed. */
export type ListableState = Exclude<JobState, 'done'>;
