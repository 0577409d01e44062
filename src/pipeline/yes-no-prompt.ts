import { CheckpointError } from "../checkpoint/error.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";

/**
 * The prompt of the published Qwen3-Reranker models, byte for byte (their model card). Its three parts are tokenized
 * apart and joined: beginning, content, end. Content is `sharedContent` followed by `documentContent`.
 */
const BEGINNING =
  "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct " +
  'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n';
const END = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
const DEFAULT_INSTRUCTION =
  "Given a web search query, retrieve relevant passages that answer the query";

/** What all documents of a query have in common. */
function sharedContent(query: string, instruction: string): string {
  return `<Instruct>: ${instruction}\n<Query>: ${query}\n<Document>:`;
}

function documentContent(document: string): string {
  return ` ${document}`;
}

/** Documents that a tokenizer would be likely to join with the text in front of them. */
const JOINABLE = [
  "",
  " ",
  "x",
  " x",
  "\nx",
  ":x",
  "1",
  "\u0301x",
  "\u200dx",
  "<|im_end|>",
] as const;

/** Ids of a part of the prompt, and whether it was cut. */
interface PromptPart {
  readonly ids: Int32Array;
  readonly truncated: boolean;
}

/** The prompt of the yes/no question in tokens of one checkpoint. Only the content is ever cut. */
export class YesNoPrompt {
  /** Begins every pair. */
  readonly beginning: Int32Array;
  /** Ends every pair. */
  readonly end: Int32Array;
  /** The single tokens of the two answers. */
  readonly yes: number;
  readonly no: number;
  readonly #tokenizer: Tokenizer;
  /** Most tokens of a content. */
  readonly #contentLimit: number;

  /** `maxLength`: most tokens of a pair. Throws CheckpointError where the prompt does not work with the tokenizer. */
  constructor(tokenizer: Tokenizer, maxLength: number) {
    this.#tokenizer = tokenizer;
    this.beginning = this.#encode(BEGINNING).ids;
    this.end = this.#encode(END).ids;
    this.yes = this.#answer("yes");
    this.no = this.#answer("no");
    const fixed = this.beginning.length + this.end.length;
    this.#contentLimit = maxLength - fixed;
    if (this.#contentLimit < 1) {
      throw new CheckpointError(
        `a limit of ${maxLength} tokens leaves nothing for query and document: the prompt around them has ${fixed}; raise the limit`,
      );
    }
    this.#requireSplitBeforeDocuments();
  }

  /** Blank instructions count as none. */
  shared(query: string, instruction = ""): PromptPart {
    const content = sharedContent(query, instruction.trim() ? instruction : DEFAULT_INSTRUCTION);
    return this.#encode(content, this.#contentLimit);
  }

  /** Nothing is left of a document whose query fills the limit alone. */
  document(document: string, { ids: shared }: PromptPart): PromptPart {
    return this.#encode(documentContent(document), this.#contentLimit - shared.length);
  }

  #encode(text: string, maxLength = Infinity): PromptPart {
    return this.#tokenizer.encode(text, { addSpecial: false, maxLength });
  }

  #answer(word: string): number {
    const { ids } = this.#encode(word);
    if (ids.length === 1) return ids[0]!;
    throw new CheckpointError(
      `tokenizer.json: "${word}" is ${ids.length} tokens; a model that answers yes or no needs one for each`,
    );
  }

  /** The two pieces of a content are tokenized apart, which must give what the whole content gives. */
  #requireSplitBeforeDocuments(): void {
    const before = sharedContent("x", "x");
    for (const document of JOINABLE) {
      const after = documentContent(document);
      const apart = [...this.#encode(before).ids, ...this.#encode(after).ids];
      if (apart.join() === this.#encode(before + after).ids.join()) continue;
      throw new CheckpointError(
        `tokenizer.json: joins the document ${JSON.stringify(document)} with the prompt in front of it; this tokenizer is not supported for reranking`,
      );
    }
  }
}
