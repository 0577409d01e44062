import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { CheckpointCopy, tensorNamed } from "../../test/checkpoints.ts";
import { copyOfFixture, fixture } from "../../test/fixtures/fixtures.ts";
import { describeRefusedSettings, withSettings } from "../../test/fixtures/refused-settings.ts";
import { editTensors } from "../../test/fixtures/tensors.ts";
import { loadEmbeddingModel } from "./load-embedder.ts";

const device = mx.openDevice("cpu");

describeRefusedSettings("t5-encoder", [
  [{ feed_forward_proj: "gated-silu" }, /feed_forward_proj.*"relu"\|"gated-gelu"/],
  [{ feed_forward_proj: "gated-gelu" }, /DenseReluDense\.wi_0\.weight.*missing/],
  [{ relative_attention_num_buckets: 7 }, /relative_attention_num_buckets/],
  [{ relative_attention_num_buckets: 16 }, /relative_attention_bias\.weight.*\[8, 3\].*\[16, 3\]/],
  [{ relative_attention_max_distance: 2 }, /relative_attention_max_distance: 2 is too small for 8/],
  [{ is_decoder: true }, /is_decoder/],
  [{ d_kv: 12 }, /SelfAttention\.[qkv]\.weight.*\[30, 36\].*\[36, 36\]/],
]);

function vector(directory: string, on: "cpu" | "gpu" = device): Float32Array {
  const model = loadEmbeddingModel({ directory, device: on });
  return model.start([model.tokenize({ text: "hello world" }, {})]).read();
}

test("a whole T5, decoder and head included, embeds by its encoder", () => {
  const copy = new CheckpointCopy("t5-encoder")
    .set("config.json", { architectures: ["T5ForConditionalGeneration"] })
    .tensors((table) => {
      const shared = tensorNamed(table, "shared.weight");
      table.set("encoder.embed_tokens.weight", shared).set("decoder.embed_tokens.weight", shared);
      return table.set("lm_head.weight", shared);
    });
  expect(vector(copy.directory)).toEqual(vector(fixture("t5-encoder")));
});

test("16-bit weights are computed in f32 on every device: half precision overflows", () => {
  const directory = copyOfFixture("t5-encoder-gated");
  editTensors(directory, (tensor) => mx.astype(tensor, "float16"));
  // The device only decides what the weights are converted to.
  expect(vector(directory, "gpu")).toEqual(vector(directory, "cpu"));
});

test("settings of the first T5, which are defaults now, may be absent", () => {
  const absent = { feed_forward_proj: undefined, is_decoder: undefined };
  expect(vector(withSettings("t5-encoder", absent))).toEqual(vector(fixture("t5-encoder")));
});
