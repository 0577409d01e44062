import {
  type PreTokenizer,
  SequencePreTokenizer,
  WhitespaceSplitPreTokenizer,
} from "@huggingface/tokenizers";

/**
 * The library's pre-tokenizer, splitting words at Unicode's white space: JavaScript's own `\s` lacks U+0085 and has
 * U+FEFF in addition.
 */
export function faithfulSplits(preTokenizer: PreTokenizer | null): PreTokenizer | null {
  if (preTokenizer instanceof SequencePreTokenizer) {
    preTokenizer.tokenizers = preTokenizer.tokenizers.map(faithfulSplits);
  }
  return preTokenizer instanceof WhitespaceSplitPreTokenizer
    ? new FaithfulWhitespaceSplit()
    : preTokenizer;
}

class FaithfulWhitespaceSplit extends WhitespaceSplitPreTokenizer {
  override pre_tokenize_text(text: string): string[] {
    return text.match(/\P{White_Space}+/gu) ?? [];
  }
}
