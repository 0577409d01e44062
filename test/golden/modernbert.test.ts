import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import { loadEmbeddingModel } from "../../src/models/load-embedder.ts";
import type { EmbeddingModel } from "../../src/pipeline/embedder.ts";
import { copyOfFixture, editJson } from "../fixtures/fixtures.ts";
import { editTensors } from "../fixtures/tensors.ts";
import { describeEmbedders } from "./embedder.ts";
import { expectClose, largestDifference, rawVectors } from "./reference.ts";

const device = mx.openDevice("cpu");

describeEmbedders("modernbert", ["modernbert-mean", "modernbert-cls"]);

/** A checkpoint with f16 weights that takes texts of up to 400 tokens. */
function halfPrecision(): string {
  const directory = copyOfFixture("modernbert-mean");
  editTensors(directory, (tensor) => mx.astype(tensor, "float16"));
  const limits = {
    "config.json": { max_position_embeddings: 400, local_attention: 128 },
    "sentence_bert_config.json": { max_seq_length: 400 },
    "tokenizer_config.json": { model_max_length: 400 },
  };
  for (const [file, limit] of Object.entries(limits)) {
    editJson<object>(join(directory, file), (config) => Object.assign(config, limit));
  }
  return directory;
}

function rowOfLength(model: EmbeddingModel, length: number) {
  const ids = Int32Array.from({ length }, (_, i) => (7 + 31 * i) % 640);
  return model.tokenize({ ids }, {});
}

describe("a 16-bit checkpoint and windows of 128", () => {
  const directory = halfPrecision();
  const exact = loadEmbeddingModel({ directory, device });
  // The device only decides what the weights are converted to: this one leaves them in f16.
  const half = loadEmbeddingModel({ directory, device: "gpu" });
  const short = exact.tokenize({ text: "short probe" }, {});

  test.each([64, 65, 66, 127, 128, 129, 130, 255, 256, 257, 288, 400])(
    "beside %d tokens a short text keeps its vector, and all is finite",
    (length) => {
      const long = rowOfLength(exact, length);
      expect(long.ids).toHaveLength(length);
      const [alone, longAlone] = [short, long].map((row) => rawVectors(exact, [row])[0]!);
      const together = rawVectors(exact, [short, long]);
      expectClose(together[0]!, alone!, "short");
      expectClose(together[1]!, longAlone!, "long");

      const inHalf = rawVectors(half, [short, long]);
      const halfAlone = rawVectors(half, [short])[0]!;
      expect(largestDifference(inHalf[0]!, halfAlone)).toBeLessThan(0.01);
      expect(largestDifference(inHalf[0]!, alone!)).toBeLessThan(0.05);
      expect(largestDifference(inHalf[1]!, longAlone!)).toBeLessThan(0.05);
    },
  );
});
