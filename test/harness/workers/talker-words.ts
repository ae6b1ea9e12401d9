/** Imported as `./talker-words.js`, like every module of the library. */
export function say(name: string): string {
  return `hello ${name}`;
}
