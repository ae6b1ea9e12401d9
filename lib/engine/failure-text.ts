const LONGEST = 4096;

/** What a row keeps of an error: its stack where there is one, always something readable, never longer than is kept. */
export function failureText(error: unknown): string {
  try {
    return describe(error).slice(0, LONGEST);
  } catch {
    return 'threw an object that cannot be shown'; // a getter of its own threw
  }
}

function describe(error: unknown): string {
  if (isError(error)) {
    const { stack } = error; // no string where the app structures its stacks
    return typeof stack === 'string' && stack !== '' ? stack : `${error.name}: ${error.message}`;
  }
  if (typeof error === 'string') return error === '' ? 'threw an empty string' : error;
  if (typeof error === 'object' && error !== null) return `threw ${shape(error)}`;
  return `threw ${String(error)}`;
}

/** Errors of another realm (a vm context, a test runner) are no instances of ours. */
function isError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]';
}

function shape(value: object): string {
  try {
    return JSON.stringify(value) ?? typeof value;
  } catch {
    return 'an object that cannot be shown';
  }
}
