/** What is likely where a constant is undefined while decorators are read. */
export const IMPORT_CIRCLE = 'do the file that defines it and this one import each other?';

/** The same behind a sentence that says what was got. */
export function circleHint(got: unknown): string {
  return got === undefined ? `; ${IMPORT_CIRCLE}` : '';
}
