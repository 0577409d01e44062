import { template, type Vocabulary } from "./vocabulary.ts";

const WORD_START = "▁";
const CONTINUATION = "##";

/** `bert`: WordPiece. The file marks beginnings of words, tokenizer.json the rest. */
export function wordPiece(vocabulary: Vocabulary) {
  const { metadata, tokens } = vocabulary;
  const contentOf = (token: string) =>
    token.startsWith(WORD_START) ? token.slice(WORD_START.length) : token;
  const vocab = Object.fromEntries(
    tokens.flatMap((token, id) => {
      if (vocabulary.isOf("unused", id)) return [];
      const isWhole = token.startsWith(WORD_START) || vocabulary.isOf("control", id);
      return [[isWhole ? contentOf(token) : CONTINUATION + token, id]];
    }),
  );
  const cls = vocabulary.optionalSpecial("cls") ?? vocabulary.special("bos");
  // sic: the key is misspelt in all files
  const sep = vocabulary.optionalSpecial("seperator") ?? vocabulary.special("eos");
  const lowercase = metadata.flag("tokenizer.ggml.normalizer.lowercase", !hasCapitals(vocab));
  return {
    added_tokens: vocabulary.added({ contentOf }),
    normalizer: {
      type: "BertNormalizer",
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: metadata.flag("tokenizer.ggml.normalizer.strip_accents", lowercase),
      lowercase,
    },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor: template([cls, "A", sep], [cls, "A", sep, "B", sep], 1),
    decoder: { type: "WordPiece", prefix: CONTINUATION, cleanup: true },
    model: {
      type: "WordPiece",
      vocab,
      unk_token: vocabulary.special("unknown").content,
      continuing_subword_prefix: CONTINUATION,
      max_input_chars_per_word: 100,
    },
  };
}

/** Most files do not say whether texts are lower-cased. A vocabulary for texts that are has no capital letter. */
function hasCapitals(vocab: Readonly<Record<string, number>>): boolean {
  return Object.hasOwn(vocab, "A");
}
