const LONGEST = 4096;

/** What a row keeps of an error: its stack where there is one, always something readable, never longer than is kept. */
export function failureText(error: unknown): string {
  return describe(error).slice(0, LONGEST);
}

function describe(error: unknown): string {
  if (error instanceof Error) return error.stack || `${error.name}: ${error.message}`;
  if (typeof error === 'string') return error === '' ? 'threw an empty string' : error;
  if (typeof error === 'object' && error !== null) return `threw ${shape(error)}`;
  return `threw ${String(error)}`;
}

function shape(value: object): string {
  try {
    return JSON.stringify(value) ?? typeof value;
  } catch {
    return 'an object that cannot be shown';
  }
}
