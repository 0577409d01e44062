import { decoderTemplate, encoderTemplate } from "./byte-pairs.ts";
import type { Vocabulary } from "./vocabulary.ts";

const SPACE = "▁";

/** `t5`: a Unigram model of SentencePiece. */
export function unigram(vocabulary: Vocabulary) {
  const { metadata } = vocabulary;
  const charsmap = metadata.optionalNumbers("tokenizer.ggml.precompiled_charsmap");
  const metaspace = {
    type: "Metaspace",
    replacement: SPACE,
    prepend_scheme: metadata.flag("tokenizer.ggml.add_space_prefix", true) ? "always" : "never",
    split: true,
  };
  const dropsSpaces = metadata.flag("tokenizer.ggml.remove_extra_whitespaces", true);
  const isEncoder = vocabulary.optionalSpecial("bos") !== undefined;
  return {
    added_tokens: vocabulary.added({ maskStrips: isEncoder }),
    normalizer: charsmap
      ? {
          type: "Precompiled",
          precompiled_charsmap: Buffer.from(Uint8Array.from(charsmap)).toString("base64"),
        }
      : null,
    pre_tokenizer: dropsSpaces
      ? { type: "Sequence", pretokenizers: [{ type: "WhitespaceSplit" }, metaspace] }
      : metaspace,
    post_processor: isEncoder ? encoderTemplate(vocabulary) : decoderTemplate(vocabulary),
    decoder: metaspace,
    model: {
      type: "Unigram",
      vocab: scoredPieces(vocabulary),
      unk_id: vocabulary.special("unknown").id,
    },
  };
}

/** Without the unused ones at the end, whose scores would make unknown characters too dear. */
function scoredPieces(vocabulary: Vocabulary): [string, number][] {
  const { tokens } = vocabulary;
  const scores = vocabulary.scores();
  const last = [...tokens.keys()].findLastIndex((id) => !vocabulary.isOf("unused", id));
  return tokens.slice(0, last + 1).map((token, id) => [token, scores[id] ?? 0]);
}

/** `llama`: merges of SentencePiece, which the file leaves to be told from the scores of their results. */
export function sentencePieceMerges(vocabulary: Vocabulary) {
  const { metadata, tokens } = vocabulary;
  const spaced = (token: string) => token.replaceAll(" ", SPACE);
  const vocab = new Map(tokens.map((token, id) => [spaced(token), id]));
  const underlined = { type: "Replace", pattern: { String: " " }, content: SPACE };
  return {
    added_tokens: vocabulary.added({ contentOf: spaced }),
    normalizer: metadata.flag("tokenizer.ggml.add_space_prefix", true)
      ? { type: "Sequence", normalizers: [{ type: "Prepend", prepend: SPACE }, underlined] }
      : underlined,
    pre_tokenizer: null,
    post_processor: decoderTemplate(vocabulary),
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: SPACE }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
      ],
    },
    model: {
      type: "BPE",
      vocab: Object.fromEntries(vocab),
      merges: mergesOf(vocab, vocabulary),
      unk_token: vocabulary.special("unknown").content,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
    },
  };
}

interface Merge {
  readonly pair: [left: string, right: string];
  readonly score: number;
}

/**
 * Every pair of tokens that is a token together: the best scored results first, then the longest left parts. Runs of
 * white space and the like, which were added for a purpose, come before all others; the file has no score for them.
 */
function mergesOf(vocab: ReadonlyMap<string, number>, vocabulary: Vocabulary): Merge["pair"][] {
  const scores = vocabulary.scores();
  const merges: Merge[] = [];
  for (const [token, id] of vocab) {
    const isAdded = vocabulary.isOf("userDefined", id);
    if (!isAdded && !vocabulary.isOf("normal", id)) continue;
    const score = isAdded ? Infinity : (scores[id] ?? 0);
    for (let cut = 1; cut < token.length; cut++) {
      const pair: Merge["pair"] = [token.slice(0, cut), token.slice(cut)];
      if (vocab.has(pair[0]) && vocab.has(pair[1])) merges.push({ pair, score });
    }
  }
  return merges.sort(byPriority).map(({ pair }) => pair);
}

function byPriority(a: Merge, b: Merge): number {
  if (a.score !== b.score) return b.score - a.score;
  return b.pair[0].length - a.pair[0].length || b.pair[1].length - a.pair[1].length;
}
