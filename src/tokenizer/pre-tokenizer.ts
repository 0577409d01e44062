import {
  BertPreTokenizer,
  ByteLevelPreTokenizer,
  type PreTokenizer,
  SequencePreTokenizer,
  WhitespaceSplitPreTokenizer,
} from "@huggingface/tokenizers";
import { WORDS_AND_PUNCTUATION } from "./reference-unicode.ts";

/** Words of GPT-2, with the white space of Unicode in place of JavaScript's. */
const GPT2_WORDS =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

/** The library's pre-tokenizer with the classes of characters of the reference library. */
export function faithfulPreTokenizer(preTokenizer: PreTokenizer | null): PreTokenizer | null {
  if (preTokenizer instanceof SequencePreTokenizer) {
    preTokenizer.tokenizers = preTokenizer.tokenizers.map(faithfulPreTokenizer);
  }
  if (preTokenizer instanceof ByteLevelPreTokenizer) preTokenizer.pattern = GPT2_WORDS;
  if (preTokenizer instanceof BertPreTokenizer) return new FaithfulBertWords();
  if (preTokenizer instanceof WhitespaceSplitPreTokenizer) return new FaithfulWhitespaceSplit();
  return preTokenizer;
}

class FaithfulBertWords extends BertPreTokenizer {
  override pre_tokenize_text(text: string): string[] {
    return text.match(WORDS_AND_PUNCTUATION) ?? [];
  }
}

class FaithfulWhitespaceSplit extends WhitespaceSplitPreTokenizer {
  override pre_tokenize_text(text: string): string[] {
    return text.match(/\P{White_Space}+/gu) ?? [];
  }
}
