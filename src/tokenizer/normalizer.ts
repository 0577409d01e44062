import {
  LowercaseNormalizer,
  Normalizer,
  PrecompiledNormalizer,
  SequenceNormalizer,
  StripNormalizer,
} from "@huggingface/tokenizers";
import { FaithfulBert, lowerCased } from "./bert-normalizer.ts";
import { Charsmap } from "./charsmap.ts";
import { whiteSpaceAfter, whiteSpaceBefore } from "./white-space.ts";

/**
 * The library's normalizer with its deviations from the reference library put right: classes of characters are those
 * of the reference, lower-casing looks at one character at a time, and a precompiled map is followed instead of
 * approximated.
 */
export function faithful(normalizer: Normalizer | null): Normalizer | null {
  if (normalizer instanceof SequenceNormalizer) {
    normalizer.normalizers = normalizer.normalizers.map(faithful);
    return normalizer;
  }
  const config = normalizer?.config;
  if (config?.type === "BertNormalizer") return new FaithfulBert(config);
  if (config?.type === "Lowercase") return new FaithfulLowercase(config);
  if (normalizer instanceof StripNormalizer) return new FaithfulStrip(normalizer.config);
  if (config?.type === "Precompiled") return new FaithfulPrecompiled(config);
  return normalizer;
}

class FaithfulLowercase extends LowercaseNormalizer {
  override normalize(text: string): string {
    return lowerCased(text);
  }
}

class FaithfulStrip extends StripNormalizer {
  override normalize(text: string): string {
    const { strip_left = true, strip_right = true } = this.config;
    const start = strip_left ? whiteSpaceAfter(text, 0) : 0;
    return text.slice(start, strip_right ? whiteSpaceBefore(text, text.length, start) : undefined);
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
