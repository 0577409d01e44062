/** White space of Unicode, as the reference library has it: `\s` of JavaScript adds U+FEFF and lacks U+0085. */
const WHITE_SPACE = /\p{White_Space}/u;

/** All white space characters are one UTF-16 unit. */
function isWhiteSpace(unit: string): boolean {
  return WHITE_SPACE.test(unit);
}

/** Where the white space begins that ends at `end`, at `from` at the earliest. */
export function whiteSpaceBefore(text: string, end: number, from = 0): number {
  let start = end;
  while (start > from && isWhiteSpace(text.charAt(start - 1))) start--;
  return start;
}

/** Where the white space ends that begins at `start`. */
export function whiteSpaceAfter(text: string, start: number): number {
  let end = start;
  while (end < text.length && isWhiteSpace(text.charAt(end))) end++;
  return end;
}
