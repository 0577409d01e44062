import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import {
  CheckpointCopy,
  floatsOf,
  floatTensor,
  readTensors,
  tensorNamed,
} from "../../test/checkpoints.ts";
import { copyOfFixture, editJson, fixture } from "../../test/fixtures/fixtures.ts";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { loadYesNoReranker } from "./load-yes-no-reranker.ts";

const device = mx.openDevice("cpu");

/** A copy of rerank-qwen3 with keys of JSON files changed; undefined removes a key. */
function changed(files: Record<string, Record<string, unknown>>): string {
  const directory = copyOfFixture("rerank-qwen3");
  for (const [file, changes] of Object.entries(files)) {
    editJson<Record<string, unknown>>(join(directory, file), (content) =>
      Object.assign(content, changes),
    );
  }
  return directory;
}

function load(directory: string, maxLength?: number) {
  return loadYesNoReranker(readCheckpoint(directory), { device, maxLength });
}

describe("a checkpoint that cannot be asked stops the load by name", () => {
  test.each([
    [
      { architectures: ["Qwen3ForSequenceClassification"] },
      /Qwen3ForSequenceClassification.*must be Qwen3ForCausalLM/,
    ],
    [{ architectures: [] }, /architecture none/],
    [{ model_type: "qwen2" }, /model_type "qwen2"/],
    [{ quantization: { bits: 7, group_size: 64 } }, /quantization: bits: 7/],
    [{ tie_word_embeddings: false }, /"lm_head\.weight" is missing/],
    [{ vocab_size: 600 }, /embed_tokens\.weight/],
  ] as const)("%j", (changes, message) => {
    const directory = changed({ "config.json": changes });
    expect(() => load(directory)).toThrow(CheckpointError);
    expect(() => load(directory)).toThrow(message);
  });

  test("a limit that the prompt alone fills", () => {
    expect(() => load(fixture("rerank-qwen3"), 96)).toThrow(/limit of 96 tokens leaves nothing/);
  });
});

test("the limit is 8192 tokens unless a file or the caller says less", () => {
  const wide = {
    "config.json": { max_position_embeddings: 40960 },
    "tokenizer_config.json": { model_max_length: 131072 },
  };
  expect(load(changed(wide)).facts.maxLength).toBe(8192);
  expect(load(changed(wide), 20_000).facts.maxLength).toBe(8192);
  expect(load(changed(wide), 300).facts.maxLength).toBe(300);
  const narrow = { "config.json": { max_position_embeddings: 200 } };
  expect(load(changed(narrow)).facts.maxLength).toBe(200);
});

test("an untied output head is used, and only two of its rows stay in memory", () => {
  const table = "model.embed_tokens.weight";
  const { directory } = new CheckpointCopy("rerank-qwen3")
    .set("config.json", { tie_word_embeddings: false })
    .tensors((tensors) => {
      const embedding = tensorNamed(tensors, table);
      const negated = floatsOf(embedding).map((value) => -value);
      tensors.set("lm_head.weight", floatTensor(embedding.shape, negated));
    });
  const tableBytes = tensorNamed(readTensors(join(directory, "model.safetensors")), table).bytes;
  const before = mx.activeBytes();
  const untied = load(directory);
  const untiedBytes = mx.activeBytes() - before;
  const tied = load(fixture("rerank-qwen3"));
  const tiedBytes = mx.activeBytes() - before - untiedBytes;
  expect(Math.abs(untiedBytes - tiedBytes)).toBeLessThan(tableBytes.length / 2);
  const logit = (model: typeof tied) => {
    const query = model.prepare("a query");
    const [value] = model.start([query.pair("a document")]).read();
    query.release();
    return value!;
  };
  expect(logit(untied)).toBeCloseTo(-logit(tied), 5);
});

test("facts of the checkpoint", () => {
  expect(load(fixture("rerank-qwen3"))).toMatchObject({
    facts: { family: "qwen3", storedDtype: "F32", vocabSize: 672, maxLength: 288 },
    takesInstruction: true,
  });
});
