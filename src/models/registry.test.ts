import { expect, test } from "bun:test";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { kindOf } from "../checkpoint/kind.ts";
import { ENCODERS, GENERATORS } from "../checkpoint/model-types.ts";
import { families } from "./registry.ts";

/** What a checkpoint of a family is served as where its files leave out all that is optional. */
function kindOfBare(modelType: string): string {
  const checkpoint = readCheckpoint(fixture("bert-mean"));
  const bare = { directory: fixture("tokenizers"), modules: undefined, architectures: [] };
  return kindOf({ ...checkpoint, ...bare, modelType });
}

test("every model_type that is known to load has its family, and only one", () => {
  const known = [...ENCODERS, ...GENERATORS];
  expect(families.map(({ modelType }) => modelType).sort()).toEqual(known.sort());
});

test.each(ENCODERS)("a %s embeds whatever its files leave out", (modelType) => {
  expect(kindOfBare(modelType)).toBe("embedding");
});

test.each(GENERATORS)(
  "a %s is a chat model where its files do not say that it embeds",
  (modelType) => {
    expect(kindOfBare(modelType)).toBe("chat");
  },
);
