import { CheckpointError } from "../checkpoint/error.ts";
import type { TemplatePart } from "../tokenizer/post-processor.ts";

/** Rows of the tables that a network looks tokens up in. */
interface TokenTables {
  readonly vocabSize: number;
  /** Of the table of token types; absent or 1: types are not looked at. */
  readonly typeCount?: number | undefined;
}

/** Throws CheckpointError where the tokenizer puts a token around texts, or gives a type, that the network lacks. */
export function requireFittingTemplate(
  template: readonly TemplatePart[],
  { vocabSize, typeCount = 1 }: TokenTables,
): void {
  for (const part of template) {
    if (part.kind === "special" && part.id >= vocabSize) {
      throw misfit(
        `puts the token ${part.id} around texts, config.json has a vocab_size of ${vocabSize}`,
      );
    }
    if (typeCount > 1 && part.typeId >= typeCount) {
      throw misfit(
        `gives tokens the type ${part.typeId}, config.json has a type_vocab_size of ${typeCount}`,
      );
    }
  }
}

/** Throws CheckpointError where rows of two texts lack one of them. */
export function requireBothTexts(template: readonly TemplatePart[]): void {
  for (const text of ["A", "B"] as const) {
    if (template.some((part) => part.kind === "text" && part.text === text)) continue;
    throw misfit(`leaves ${text} out of rows of two texts, a reranker needs both`);
  }
}

function misfit(what: string): CheckpointError {
  return new CheckpointError(`tokenizer.json: post_processor ${what}; they do not belong together`);
}
