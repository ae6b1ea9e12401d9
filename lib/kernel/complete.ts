/**
 * Options with nothing left out. Not `Required`: where the compiler is exact about optional properties, that lets an
 * `undefined` stand which is written out.
 */
export type Complete<Options> = { [Name in keyof Options]-?: Exclude<Options[Name], undefined> };
