/** What one script call may carry: no call holds the server for long. */
const MOST_PER_CALL = 500;
const MOST_BYTES_PER_CALL = 4_000_000;

/** In order, each small enough for one script call; one that is large by itself goes alone. */
export function portions<T>(items: readonly T[], bytesOf: (item: T) => number): T[][] {
  const all: T[][] = [];
  let portion: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const more = bytesOf(item);
    if (portion.length === MOST_PER_CALL || (bytes + more > MOST_BYTES_PER_CALL && portion.length > 0)) {
      all.push(portion);
      portion = [];
      bytes = 0;
    }
    portion.push(item);
    bytes += more;
  }
  if (portion.length > 0) all.push(portion);
  return all;
}
