import type { GgufHeader } from "../../checkpoint/gguf/header.ts";
import { checkedTokenizerFile, type TokenizerFile } from "../tokenizer-file.ts";
import { bytePairs } from "./byte-pairs.ts";
import { sentencePieceMerges, unigram } from "./sentence-piece.ts";
import { Vocabulary } from "./vocabulary.ts";
import { wordPiece } from "./word-piece.ts";

/** By `tokenizer.ggml.model`. */
const models = new Map<string, (vocabulary: Vocabulary) => unknown>([
  ["bert", wordPiece],
  ["gpt2", bytePairs],
  ["t5", unigram],
  ["llama", sentencePieceMerges],
]);

/** The keys of the tokenizer, as tokenizer.json would say it. Throws CheckpointError naming the key that is unknown. */
export function tokenizerFileOf({ path, metadata }: GgufHeader): TokenizerFile {
  const key = "tokenizer.ggml.model";
  const name = metadata.text(key);
  const read = models.get(name);
  if (read === undefined) {
    const known = [...models.keys()].join(", ");
    throw metadata.fault(key, `is "${name}", which is not supported (known: ${known})`);
  }
  return checkedTokenizerFile(path, read(new Vocabulary(metadata)));
}
