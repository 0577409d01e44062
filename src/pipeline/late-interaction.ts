import type {
  Expansion,
  LateInteractionSettings,
  Side,
  SideSettings,
} from "../checkpoint/late-interaction.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import type { Encoding, Tokenizer } from "../tokenizer/tokenizer.ts";

/** A text of a model with one vector per token. */
interface MultiVectorRow extends Encoding {
  /** Tokens of the text, specials and marker included: without those that fill it up. */
  readonly tokens: number;
  /** Leading tokens that attention sees; absent: all. */
  readonly attended?: number | undefined;
  /** The tokens that give a vector, in order; absent: all. */
  readonly kept?: Int32Array | undefined;
}

/** Most tokens of a row. */
type SideLimits = Readonly<Record<Side, number>>;

/**
 * Token rows of models with one vector per token, as PyLate and the MultiVectorEncoder of sentence-transformers make
 * them: a marker token tells queries from documents, queries may be filled up, and some tokens give no vector.
 */
export class LateInteraction {
  readonly limits: SideLimits;
  readonly #tokenizer: Tokenizer;
  readonly #sides: Readonly<Record<Side, RowRule>>;

  /** Throws CheckpointError naming a token that the tokenizer lacks. `maskToken`: of the tokenizer's files. */
  constructor(
    { query, document }: LateInteractionSettings,
    tokenizer: Tokenizer,
    { limits, maskToken }: { readonly limits: SideLimits; readonly maskToken: string | undefined },
  ) {
    this.limits = limits;
    this.#tokenizer = tokenizer;
    this.#sides = {
      query: rowRule("query", query, tokenizer, maskToken),
      document: rowRule("document", document, tokenizer, maskToken),
    };
  }

  /** The row of a text; without a side it gets no marker, and every token gives a vector. */
  row(text: string, side: Side | undefined): MultiVectorRow {
    const maxLength = this.limits[side ?? "document"];
    if (!side) {
      const encoding = this.#tokenizer.encode(text, { maxLength });
      return { ...encoding, tokens: encoding.ids.length };
    }
    const { marker, expansion, skipped } = this.#sides[side];
    const markers = marker === undefined ? 0 : 1;
    const bare = this.#tokenizer.encode(text, { maxLength: maxLength - markers });
    const marked = marker === undefined ? bare : withMarker(bare, marker);
    const tokens = marked.ids.length;
    const length = Math.min(expansion?.length ?? 0, maxLength);
    const isFilled = tokens > 0 && tokens < length;
    const row = expansion && isFilled ? filledUp(marked, length, expansion.id) : marked;
    return {
      ...row,
      tokens,
      attended: isFilled && !expansion?.attend ? tokens : undefined,
      kept: skipped.size > 0 ? keptOf(row.ids, skipped) : undefined,
    };
  }
}

/** The settings of a side in token ids. */
interface RowRule {
  readonly marker: number | undefined;
  readonly expansion: (Pick<Expansion, "length" | "attend"> & { readonly id: number }) | undefined;
  readonly skipped: ReadonlySet<number>;
}

function rowRule(
  side: Side,
  { marker, expansion, skipped }: SideSettings,
  tokenizer: Tokenizer,
  maskToken: string | undefined,
): RowRule {
  const known = (token: string | undefined, setting: string): number => {
    const id = token === undefined ? undefined : tokenizer.idOf(token);
    if (id !== undefined) return id;
    const what =
      token === undefined
        ? "the tokenizer has no mask token"
        : `"${token}" is not a token of tokenizer.json`;
    throw new CheckpointError(`${setting}: ${what}; the files do not belong together`);
  };
  return {
    marker: marker ? known(marker, `${side}_prefix`) : undefined,
    expansion: expansion && {
      length: expansion.length,
      attend: expansion.attend,
      id: known(expansion.token ?? maskToken, "query expansion"),
    },
    skipped: new Set(skipped.flatMap((word) => tokenizer.idOf(word) ?? [])),
  };
}

/** Behind the first token, which is the tokenizer's own in all published checkpoints. */
function withMarker({ ids, typeIds, truncated }: Encoding, marker: number): Encoding {
  const marked = (row: Int32Array, value: number) =>
    Int32Array.from([...row.subarray(0, 1), value, ...row.subarray(1)]);
  const types = typeIds && { typeIds: marked(typeIds, 0) };
  return { ids: marked(ids, marker), ...types, truncated };
}

/** With `id` behind the row up to `length` tokens. */
function filledUp({ ids, typeIds, truncated }: Encoding, length: number, id: number): Encoding {
  const filled = (row: Int32Array, value: number) => {
    const longer = new Int32Array(length).fill(value, row.length);
    longer.set(row);
    return longer;
  };
  return { ids: filled(ids, id), ...(typeIds && { typeIds: filled(typeIds, 0) }), truncated };
}

function keptOf(ids: Int32Array, skipped: ReadonlySet<number>): Int32Array {
  return Int32Array.from(ids.keys()).filter((place) => !skipped.has(ids[place]!));
}
