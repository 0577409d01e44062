import type { SpecialToken, Vocabulary } from "./vocabulary.ts";
import { template } from "./vocabulary.ts";

/** What is done to a text before its bytes are merged. */
interface PreTokenizer {
  readonly normalizer: { readonly type: "NFC" } | null;
  /** Splits the text; absent: the rule of GPT-2. */
  readonly split?: string;
  /** A piece that is a token is not merged. */
  readonly ignoreMerges?: boolean;
  /** Rows of encoders are between special tokens, whatever the file says. */
  readonly encoder?: boolean;
}

const WORDS = String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+`;
const REST = String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;

const qwen2: PreTokenizer = {
  normalizer: { type: "NFC" },
  split: String.raw`${WORDS}|\p{N}|${REST}`,
};

const llama3: PreTokenizer = {
  normalizer: null,
  split: String.raw`${WORDS}|\p{N}{1,3}|${REST}`,
  ignoreMerges: true,
};

/** By `tokenizer.ggml.pre`. */
const preTokenizers: ReadonlyMap<string, PreTokenizer> = new Map([
  ["qwen2", qwen2],
  ["llama3", llama3],
  ["llama-v3", llama3],
  ["llama-bpe", llama3],
  ["gpt-2", { normalizer: null }],
  ["roberta-bpe", { normalizer: null, encoder: true }],
]);

/** `gpt2`: merges of byte pairs. Throws CheckpointError naming a pre-tokenizer that is not known. */
export function bytePairs(vocabulary: Vocabulary) {
  const { metadata, tokens } = vocabulary;
  const { normalizer, split, ignoreMerges = false, encoder = false } = preTokenizerOf(vocabulary);
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true };
  return {
    added_tokens: vocabulary.added({ maskStrips: encoder }),
    normalizer,
    pre_tokenizer:
      split === undefined
        ? { ...byteLevel, use_regex: true }
        : {
            type: "Sequence",
            pretokenizers: [
              { type: "Split", pattern: { Regex: split }, behavior: "Isolated", invert: false },
              { ...byteLevel, use_regex: false },
            ],
          },
    post_processor: encoder ? encoderTemplate(vocabulary) : decoderTemplate(vocabulary),
    decoder: { ...byteLevel, use_regex: true },
    model: {
      type: "BPE",
      vocab: Object.fromEntries(
        tokens.flatMap((token, id) => (vocabulary.isOf("unused", id) ? [] : [[token, id]])),
      ),
      merges: metadata.texts("tokenizer.ggml.merges"),
      unk_token: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: ignoreMerges,
    },
  };
}

function preTokenizerOf({ metadata }: Vocabulary): PreTokenizer {
  const key = "tokenizer.ggml.pre";
  const name = metadata.text(key);
  const found = preTokenizers.get(name);
  if (found) return found;
  const known = [...preTokenizers.keys()].join(", ");
  throw metadata.fault(key, `is "${name}", which is not supported (known: ${known})`);
}

/** `<s> A </s>` and `<s> A </s></s> B </s>`. */
export function encoderTemplate(vocabulary: Vocabulary) {
  const begin = vocabulary.special("bos");
  const end = vocabulary.special("eos");
  return template([begin, "A", end], [begin, "A", end, end, "B", end]);
}

/** What the file says of the beginning and the end, around each text. */
export function decoderTemplate(vocabulary: Vocabulary) {
  const { metadata } = vocabulary;
  const flagged = (name: string): readonly SpecialToken[] =>
    metadata.flag(`tokenizer.ggml.add_${name}_token`, false) ? [vocabulary.special(name)] : [];
  const begin = flagged("bos");
  const end = flagged("eos");
  return template([...begin, "A", ...end], [...begin, "A", ...end, ...begin, "B", ...end]);
}
