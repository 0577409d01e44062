import {
  BertNormalizer,
  LowercaseNormalizer,
  Normalizer,
  PrecompiledNormalizer,
  SequenceNormalizer,
  StripNormalizer,
} from "@huggingface/tokenizers";
import { Charsmap } from "./charsmap.ts";

/** Han characters beyond the 16-bit plane that BERT splits one by one. */
const SUPPLEMENTARY_HAN =
  /[\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b820}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu;

/**
 * The library's normalizer with four deviations from the reference library put right: lower-casing looks at one
 * character at a time (a capital sigma at a word's end is σ, not ς), Han characters beyond the 16-bit plane are
 * split too, a precompiled map is followed instead of approximated, and what is stripped is Unicode's white space.
 */
export function faithful(normalizer: Normalizer | null): Normalizer | null {
  if (normalizer instanceof SequenceNormalizer) {
    normalizer.normalizers = normalizer.normalizers.map(faithful);
    return normalizer;
  }
  const config = normalizer?.config;
  if (config?.type === "BertNormalizer") return new FaithfulBert(config);
  if (config?.type === "Lowercase") return new FaithfulLowercase(config);
  if (config?.type === "Strip") return new FaithfulStrip(config);
  if (config?.type === "Precompiled") return new FaithfulPrecompiled(config);
  return normalizer;
}

class FaithfulBert extends BertNormalizer {
  override normalize(text: string): string {
    if (this.config.type !== "BertNormalizer") return super.normalize(text);
    const spaced = this.config.handle_chinese_chars
      ? text.replace(SUPPLEMENTARY_HAN, " $& ")
      : text;
    return super.normalize(this.config.lowercase ? withoutCapitalSigma(spaced) : spaced);
  }
}

class FaithfulLowercase extends LowercaseNormalizer {
  override normalize(text: string): string {
    return super.normalize(withoutCapitalSigma(text));
  }
}

const LEADING_SPACE = /^\p{White_Space}+/u;
const TRAILING_SPACE = /\p{White_Space}+$/u;

class FaithfulStrip extends StripNormalizer {
  override normalize(text: string): string {
    const { strip_left: left, strip_right: right } = this.config;
    const begun = left ? text.replace(LEADING_SPACE, "") : text;
    return right ? begun.replace(TRAILING_SPACE, "") : begun;
  }
}

class FaithfulPrecompiled extends Normalizer {
  readonly #charsmap: Charsmap;

  constructor(config: ConstructorParameters<typeof PrecompiledNormalizer>[0]) {
    super(config);
    this.#charsmap = new Charsmap(config.precompiled_charsmap);
  }

  override normalize(text: string): string {
    return this.#charsmap.normalize(text);
  }
}

function withoutCapitalSigma(text: string): string {
  return text.replaceAll("Σ", "σ");
}
