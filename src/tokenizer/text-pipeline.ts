import type { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import { AddedTokens, type AddedToken } from "./added-tokens.ts";

type Step = Pick<LibraryTokenizer, "normalizer" | "pre_tokenizer" | "model">;

/**
 * From a text to ids: added tokens, normalizer, added tokens in their normalised form, pre-tokenizer, model. The steps
 * are those of the library; what it makes of added tokens is not what the reference does.
 */
export class TextPipeline {
  readonly #steps: Step;
  readonly #stored: AddedTokens;
  readonly #normalized: AddedTokens;

  constructor(steps: Step, addedTokens: readonly AddedToken[]) {
    const { normalizer } = steps;
    this.#steps = steps;
    this.#stored = new AddedTokens(
      addedTokens.filter(({ normalized }) => !normalized),
      ({ content }) => content,
    );
    this.#normalized = new AddedTokens(
      addedTokens.filter(({ normalized }) => normalized),
      ({ content }) => normalizer?.normalize(content) ?? content,
    );
  }

  /** Without the special tokens around a text. */
  encode(text: string): number[] {
    const { normalizer } = this.#steps;
    const ids: number[] = [];
    for (const part of this.#stored.split(text)) {
      if (part.id !== undefined) {
        ids.push(part.id);
        continue;
      }
      const normalized = normalizer ? normalizer.normalize(part.text) : part.text;
      for (const rest of this.#normalized.split(normalized)) {
        if (rest.id !== undefined) ids.push(rest.id);
        else this.#model(rest.text, part.start + rest.start === 0, ids);
      }
    }
    return ids;
  }

  /** `isFirst`: the text begins with this. */
  #model(text: string, isFirst: boolean, ids: number[]): void {
    const { pre_tokenizer, model } = this.#steps;
    const words = pre_tokenizer
      ? pre_tokenizer.pre_tokenize(text, { section_index: isFirst ? 0 : 1 })
      : [text];
    for (const token of model?._call(words) ?? []) {
      const id = model?.tokens_to_ids.get(token) ?? model?.unk_token_id;
      if (id !== undefined) ids.push(id);
    }
  }
}
