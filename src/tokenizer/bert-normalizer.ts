import { Normalizer } from "@huggingface/tokenizers";
import { CONTROL, HAN, NONSPACING_MARK } from "./reference-unicode.ts";

interface BertNormalizerSettings {
  readonly clean_text?: boolean;
  readonly handle_chinese_chars?: boolean;
  /** As `lowercase` where absent. */
  readonly strip_accents?: boolean | null;
  readonly lowercase?: boolean;
}

/** What BERT does to a text, step by step as in the reference library. */
export class FaithfulBert extends Normalizer {
  readonly #settings: BertNormalizerSettings;

  constructor(config: ConstructorParameters<typeof Normalizer>[0] & BertNormalizerSettings) {
    super(config);
    this.#settings = config;
  }

  override normalize(text: string): string {
    const { clean_text, handle_chinese_chars, lowercase, strip_accents } = this.#settings;
    let result = text;
    if (clean_text) result = result.replace(CONTROL, "").replace(/\p{White_Space}/gu, " ");
    if (handle_chinese_chars) result = result.replace(HAN, " $& ");
    if (strip_accents ?? lowercase) result = result.normalize("NFD").replace(NONSPACING_MARK, "");
    return lowercase ? lowerCased(result) : result;
  }
}

/** One character at a time: a capital sigma at the end of a word is σ, not ς. */
export function lowerCased(text: string): string {
  return text.replaceAll("Σ", "σ").toLowerCase();
}
