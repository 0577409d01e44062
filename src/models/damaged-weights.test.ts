/** Checkpoints whose numbers went wrong: which tensor it is, and what to do. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import { copyOfFixture } from "../../test/fixtures/fixtures.ts";
import { NotFinite } from "../pipeline/pending-values.ts";
import { withDamageNamed } from "./damaged-weights.ts";
import { loadEmbeddingModel } from "./load-embedder.ts";

const device = mx.openDevice("cpu");
const NEXT_STEP = "download the model again, or use another checkpoint";

/** A copy of a fixture with that value as the first number of a tensor. */
function damaged(fixture: string, name: string, value: number, file = "model.safetensors"): string {
  const directory = copyOfFixture(fixture);
  const path = join(directory, file);
  mx.scope(() => {
    const { tensors } = mx.loadSafetensors(path);
    mx.evaluate(...tensors.values());
    const whole = tensors.get(name);
    if (!whole) throw new Error(`${fixture} has no tensor ${name}`);
    const numbers = mx.astype(whole, "float32").toFloat32();
    numbers[0] = value;
    tensors.set(name, mx.astype(mx.fromFloat32(numbers, whole.shape), whole.dtype));
    mx.saveSafetensors(path, tensors, new Map([["format", "pt"]]));
  });
  return directory;
}

function firstVector(directory: string, base?: string): Float32Array {
  return withDamageNamed(directory, base, () => {
    const model = loadEmbeddingModel({ directory, base, device });
    return model.start([model.tokenize({ text: "hello" }, {})]).read();
  });
}

test.each([
  ["bert-mean", "encoder.layer.1.output.LayerNorm.bias", Number.NaN],
  ["bert-f16", "encoder.layer.0.output.dense.bias", Number.POSITIVE_INFINITY],
  ["bert-mean-mlx-4bit", "encoder.layer.0.output.dense.scales", Number.NaN],
])("%s: the tensor %s that holds %d is named", (fixture, name, value) => {
  const directory = damaged(fixture, name, value);
  const shown = name.replace(/scales$/, "weight");
  expect(() => firstVector(directory)).toThrow(
    `${directory}/model.safetensors is damaged: "${shown}" holds numbers that are not finite; ${NEXT_STEP}`,
  );
});

test("of an adapter its own tensor is named, not that of its base into which it is merged", () => {
  const name = "base_model.model.encoder.layer.0.attention.output.dense.lora_A.weight";
  const file = "adapter_model.safetensors";
  const directory = damaged("bert-lora-dora", name, Number.NaN, file);
  expect(() => firstVector(directory, copyOfFixture("bert-mean"))).toThrow(
    `${directory}/${file} is damaged: "${name}" holds numbers that are not finite; ${NEXT_STEP}`,
  );
});

test.each([
  ["another failure", new Error("out of memory")],
  ["an overflow of the network", new NotFinite("the network computed NaN")],
])("where every tensor is sound, %s stays what it is", (_, failure) => {
  expect(() =>
    withDamageNamed(copyOfFixture("bert-mean"), undefined, () => {
      throw failure;
    }),
  ).toThrow(failure);
});
