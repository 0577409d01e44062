import type { TokenRow } from "../nn/ragged.ts";

/** A row for the network, and what is told of the text that it was made of. */
export interface CountedRow extends TokenRow {
  /** Tokens that count as used, specials included: as if the text ran alone, and without those that fill it up. */
  readonly tokens: number;
  /** Most tokens of such a row. */
  readonly limit: number;
  /** Something was cut off to fit the limit. */
  readonly truncated: boolean;
}
