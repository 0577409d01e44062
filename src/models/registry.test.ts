import { expect, test } from "bun:test";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { kindOf } from "../checkpoint/kind.ts";
import { families } from "./registry.ts";

/** Families that generate text as well: their files decide what a checkpoint is. */
const GENERATIVE = ["t5", "qwen2", "qwen3", "llama", "mistral", "ministral3", "gemma3_text"];

const encoders = families
  .map(({ modelType }) => modelType)
  .filter((modelType) => !GENERATIVE.includes(modelType));

test.each(encoders)("a %s embeds whatever its files leave out", (modelType) => {
  const checkpoint = readCheckpoint(fixture("bert-mean"));
  const bare = { directory: fixture("tokenizers"), modules: undefined, architectures: [] };
  expect(kindOf({ ...checkpoint, ...bare, modelType })).toBe("embedding");
});
