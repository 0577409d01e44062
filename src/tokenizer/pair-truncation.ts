/** Tokens of the two texts of a pair, without special tokens. */
interface PairLengths {
  readonly first: number;
  readonly second: number;
}

/**
 * How many tokens of each text stay under a limit for both together, as the strategy `longest_first` of the reference
 * tokenizers has it: only the longer text is cut while it stays the longer one, else both get half of the limit.
 * An odd token goes to the longer text, or to the second one of equals.
 */
export function keptOfPair({ first, second }: PairLengths, limit: number): PairLengths {
  if (first + second <= limit) return { first, second };
  const half = Math.floor(limit / 2);
  if (first > second) {
    const kept = Math.min(second, half);
    return { first: limit - kept, second: kept };
  }
  const kept = Math.min(first, half);
  return { first: kept, second: limit - kept };
}
