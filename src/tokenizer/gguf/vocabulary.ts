import type { Metadata } from "../../checkpoint/gguf/metadata.ts";
import type { AddedToken } from "../added-tokens.ts";

/** What a token is, by `tokenizer.ggml.token_type`. */
const TOKEN_TYPE = {
  normal: 1,
  unknown: 2,
  control: 3,
  userDefined: 4,
  unused: 5,
  byte: 6,
} as const;

/** The tokens of a GGUF file, by their ids. */
export class Vocabulary {
  readonly tokens: readonly string[];
  readonly #types: ArrayLike<number>;

  /** Throws CheckpointError where the lists do not fit each other. */
  constructor(readonly metadata: Metadata) {
    this.tokens = metadata.texts("tokenizer.ggml.tokens");
    this.#types = this.#perToken("token_type") ?? [];
  }

  /** `tokenizer.ggml.scores`. */
  scores(): ArrayLike<number> {
    return this.#perToken("scores") ?? this.#missing("scores");
  }

  isOf(type: keyof typeof TOKEN_TYPE, id: number): boolean {
    return (this.#types[id] ?? TOKEN_TYPE.normal) === TOKEN_TYPE[type];
  }

  /** `tokenizer.ggml.<name>_token_id`, one of the tokens. */
  special(name: string): SpecialToken {
    return this.optionalSpecial(name) ?? this.#missing(`${name}_token_id`);
  }

  optionalSpecial(name: string): SpecialToken | undefined {
    const key = `tokenizer.ggml.${name}_token_id`;
    const id = this.metadata.optionalCount(key);
    if (id === undefined) return undefined;
    const content = this.tokens[id];
    if (content !== undefined) return { id, content };
    throw this.metadata.fault(key, `is ${id}, the vocabulary has ${this.tokens.length} tokens`);
  }

  /**
   * Tokens that are found in a text before all else: special ones, and those that were added for a purpose.
   * `maskStrips`: as RoBERTa's, the mask takes white space before it along, which no file says.
   */
  added({ contentOf = (token: string) => token, maskStrips = false } = {}) {
    return [...this.tokens.keys()].flatMap((id): (AddedToken & { special: boolean })[] => {
      const special = this.isOf("control", id) || this.isOf("unknown", id);
      if (!special && !this.isOf("userDefined", id)) return [];
      const content = contentOf(this.tokens[id]!);
      const lstrip = maskStrips && content === "<mask>";
      const rest = { rstrip: false, single_word: false, normalized: false };
      return [{ id, content, special, lstrip, ...rest }];
    });
  }

  #perToken(name: string): ArrayLike<number> | undefined {
    const key = `tokenizer.ggml.${name}`;
    const values = this.metadata.optionalNumbers(key);
    if (values === undefined || values.length === this.tokens.length) return values;
    throw this.metadata.fault(key, `has ${values.length} values for ${this.tokens.length} tokens`);
  }

  #missing(name: string): never {
    throw this.metadata.fault(`tokenizer.ggml.${name}`, "is missing; convert the model again");
  }
}

export interface SpecialToken {
  readonly id: number;
  readonly content: string;
}

/** A post-processor in the form of tokenizer.json. Of the pair's parts, B and what follows A have type `secondType`. */
export function template(
  single: readonly (SpecialToken | "A")[],
  pair: readonly (SpecialToken | "A" | "B")[],
  secondType = 0,
) {
  const parts = (row: readonly (SpecialToken | "A" | "B")[], typeOf: (index: number) => number) =>
    row.map((part, index) =>
      typeof part === "string"
        ? { Sequence: { id: part, type_id: typeOf(index) } }
        : { SpecialToken: { id: part.content, type_id: typeOf(index) } },
    );
  const b = pair.indexOf("B");
  const specials = [...single, ...pair].filter((part) => typeof part !== "string");
  return {
    type: "TemplateProcessing",
    single: parts(single, () => 0),
    pair: parts(pair, (index) => (index >= b ? secondType : 0)),
    special_tokens: Object.fromEntries(
      specials.map(({ id, content }) => [content, { id: content, ids: [id], tokens: [content] }]),
    ),
  };
}
