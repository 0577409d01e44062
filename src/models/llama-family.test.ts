/** Settings of the families of Llama's shape that no fixture has, and those that stop the load. */
import { describe, expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import {
  CheckpointCopy,
  floatTensor,
  referenceCase,
  type TensorTable,
} from "../../test/checkpoints.ts";
import { describeRefusedSettings } from "../../test/fixtures/refused-settings.ts";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { kindOf } from "../checkpoint/kind.ts";
import { loadEmbeddingModel } from "./load-embedder.ts";

const device = mx.openDevice("cpu");

type Settings = Record<string, unknown>;

const lastToken = { pooling_mode_mean_tokens: false, pooling_mode_lasttoken: true };

function changed(fixtureName: string, config: Settings): CheckpointCopy {
  return new CheckpointCopy(fixtureName)
    .set("config.json", config)
    .set("1_Pooling/config.json", lastToken);
}

const load = ({ directory }: CheckpointCopy) => loadEmbeddingModel({ directory, device });

const llamaSettings = { model_type: "llama", architectures: ["LlamaModel"] };

/** Biases that the reference was given too: sin(seed + 1.7 i) / 4. */
function addBiases(table: TensorTable): void {
  const parts: readonly (readonly [string, number])[] = [
    ["self_attn.q_proj", 64],
    ["self_attn.k_proj", 32],
    ["self_attn.v_proj", 32],
    ["self_attn.o_proj", 48],
    ["mlp.gate_proj", 80],
    ["mlp.up_proj", 80],
    ["mlp.down_proj", 48],
  ];
  for (const layer of [0, 1]) {
    parts.forEach(([part, width], i) => {
      const wave = Float32Array.from(
        { length: width },
        (_, j) => Math.sin(10 * layer + i + 1.7 * j) / 4,
      );
      table.set(`layers.${layer}.${part}.bias`, floatTensor([width], wave));
    });
  }
}

describe("the starts of the vectors that transformers 5.24.0 (torch CPU, eager) gives for changed fixtures", () => {
  const yarn = (original: number) => ({
    rope_scaling: { rope_type: "yarn", factor: 4, original_max_position_embeddings: original },
  });

  test.each([
    [
      "Llama, causal, with llama3 scaling",
      () => changed("llama-bidirec", llamaSettings),
      ["llama-bidirec", "long"],
      [-0.640922, 1.023737, -0.3964056, -2.281644, 0.3605647, -0.609357, 0.8801993, 0.3643738],
    ],
    [
      "Llama with biases and linear scaling",
      () => {
        const rope = { rope_scaling: { type: "linear", factor: 4 } };
        const biases = { attention_bias: true, mlp_bias: true };
        return changed("llama-bidirec", { ...llamaSettings, ...rope, ...biases }).tensors(
          addBiases,
        );
      },
      ["llama-bidirec", "medium"],
      [0.09689639, 0.7661924, 0.8931982, -0.6629402, 0.08933795, 1.60339, -0.08037329, -0.4450764],
    ],
    [
      "Mistral without a window, with YaRN",
      () => changed("mistral-embed", { sliding_window: null, ...yarn(16) }),
      ["mistral-embed", "long"],
      [-1.448888, -1.355362, 2.028568, -0.2772538, -1.177088, 1.374962, -1.12204, 0.110454],
    ],
    [
      "Mistral in both directions",
      () => changed("mistral-embed", { sliding_window: null, is_causal: false }),
      ["mistral-embed", "medium"],
      [0.6539904, -1.345641, 1.133386, -0.2392699, -1.01895, 1.610638, 0.6271335, -0.21154],
    ],
    [
      "Qwen3 with YaRN",
      () => changed("qwen3-embed", yarn(32)),
      ["qwen3-embed", "long"],
      [-1.013091, 0.01463059, 0.4084056, -0.3355242, -0.460018, -1.119462, -1.464438, -1.847873],
    ],
  ] as const)("%s", (_, make, [fixtureName, caseName], start) => {
    const model = load(make());
    const ids = Int32Array.from(referenceCase(fixtureName, caseName).token_ids);
    const vector = model.start([model.tokenize({ ids }, {})]).read();
    start.forEach((component, i) =>
      expect(Math.abs(vector[i]! - component)).toBeLessThan(1e-5 * 2.3),
    );
  });
});

test("Llama without a theta takes that of Llama 1 and 2", () => {
  const vectors = [undefined, 10_000, 20_000].map((theta) => {
    const model = load(
      changed("llama-bidirec", { ...llamaSettings, rope_theta: theta, rope_scaling: null }),
    );
    return model.start([model.tokenize({ text: "coldest March on record" }, {})]).read();
  });
  expect(vectors[0]).toEqual(vectors[1]!);
  expect(vectors[0]).not.toEqual(vectors[2]!);
});

test("EuroBERT without an epsilon takes its own", () => {
  const vectors = [undefined, 1e-5, 1e-3].map((eps) => {
    const model = load(
      new CheckpointCopy("eurobert-mean").set("config.json", { rms_norm_eps: eps }),
    );
    return model.start([model.tokenize({ text: "coldest March on record" }, {})]).read();
  });
  expect(vectors[0]).toEqual(vectors[1]!);
  expect(vectors[0]).not.toEqual(vectors[2]!);
});

const llama3 = { rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4 };

describeRefusedSettings("qwen2-embed", [
  [{ use_sliding_window: true, sliding_window: 64 }, /use_sliding_window/],
  [{ layer_types: ["full_attention", "sliding_attention"] }, /layer_types\.1/],
  [{ architectures: ["Qwen2ForRewardModel"] }, /"Qwen2ForRewardModel"/],
  [{ hidden_act: "gelu_fast" }, /hidden_act: unknown activation "gelu_fast"/],
]);

describeRefusedSettings("mistral-embed", [
  [{ is_causal: false }, /sliding_window 40 of a bidirectional Mistral/],
  [{ sliding_window: 0 }, /sliding_window/],
  [{ layer_types: ["full_attention"] }, /layer_types/],
  [{ architectures: ["MistralBiModel"] }, /"MistralBiModel"/],
]);

describeRefusedSettings("llama-bidirec", [
  [{ architectures: ["LlamaModel"] }, /architectures/],
  [{ is_causal: true }, /is_causal/],
  [{ pooling: "cls" }, /pooling/],
  [{ rope_scaling: { ...llama3, high_freq_factor: undefined } }, /high_freq/],
  [{ rope_scaling: { ...llama3, short_factor: [1] } }, /short_factor/],
  [{ partial_rotary_factor: 0.5 }, /partial_rotary_factor/],
  [{ head_dim: null }, /q_proj\.weight.*\[64, 48\].*\[48, 48\]/],
  [{ head_dim: null, num_attention_heads: 10 }, /10 heads do not divide/],
]);

describeRefusedSettings("ministral3-embed", [
  [{ rope_parameters: { rope_theta: 1e6 } }, /llama_4_scaling_beta/],
  [{ quantization_config: { quant_method: "fp8" } }, /quant_method: "fp8"/],
]);

test("an instruction is put in front in the format of the family's published models", () => {
  const text = "coldest March on record";
  const ids = (model: ReturnType<typeof load>, instruction?: string) =>
    model.tokenize({ text }, instruction ? { instruction } : {}).ids;
  const written = `Instruct: Find the month\nQuery: ${text}`;
  for (const name of ["mistral-embed", "qwen2-embed"]) {
    const model = load(new CheckpointCopy(name).remove("config_sentence_transformers.json"));
    expect(ids(model, "Find the month")).toEqual(model.tokenize({ text: written }, {}).ids);
  }
  // The prompt of this fixture has no blank behind the colon.
  const model = load(new CheckpointCopy("qwen2-embed"));
  const tight = written.replace("Query: ", "Query:");
  expect(ids(model, "Find the month")).toEqual(model.tokenize({ text: tight }, {}).ids);
  for (const name of ["llama-bidirec", "ministral3-embed"]) {
    const model = load(new CheckpointCopy(name));
    expect(ids(model, "Find the month")).toEqual(ids(model));
  }
});

test("a decoder of a family that is not known is refused by its name, with a pooling layout too", () => {
  const copy = new CheckpointCopy("llama-bidirec").set("config.json", { model_type: "phi3" });
  expect(kindOf(readCheckpoint(copy.directory))).toBe("embedding");
  expect(() => load(copy)).toThrow(CheckpointError);
  expect(() => load(copy)).toThrow(/model_type "phi3" is not supported \(known: .*llama_bidirec/);
});
