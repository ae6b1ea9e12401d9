/** Texts that some parser takes for a number, and the wire does not. */
export const NOT_NUMBERS = [
  '+5',
  ' 5',
  '5 ',
  '0x10',
  '1e3',
  '05',
  '5.0',
  '1.5',
  'nan',
  'inf',
  '-inf',
  '-0',
  '',
  'five',
  '5\0',
];

/** Numbers, but past what a double holds exactly. */
export const TOO_LARGE = ['9007199254740992', '9007199254740993', '18446744073709551616'];

/** Whole calls in which one argument, at `place`, is replaced by each of the texts. */
export function each(args: readonly string[], place: number, texts: readonly string[]): string[][] {
  return texts.map((text) => args.map((arg, i) => (i === place ? text : arg)));
}
