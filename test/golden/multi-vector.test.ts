/** Models with a vector per token: the reference's rows, alone and in any batch. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import { loadEmbeddingModel } from "../../src/models/load-embedder.ts";
import type { EmbeddingModel, EmbedRow } from "../../src/pipeline/embedder.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { multiVectorReference } from "../fixtures/multi-vector-reference.ts";
import {
  asMultiVectorEncoder,
  asStanfordColbert,
  encoderSettings,
} from "../multi-vector-layouts.ts";
import { expectClose, shuffled } from "./reference.ts";

const device = mx.openDevice("cpu");

const FIXTURE = "colbert-bert";

const { cases, ...facts } = multiVectorReference(FIXTURE);

const layouts = [
  ["PyLate", fixture(FIXTURE)],
  ["MultiVectorEncoder", asMultiVectorEncoder(FIXTURE, encoderSettings(FIXTURE)).directory],
  ["Stanford's ColBERT", asStanfordColbert(FIXTURE).directory],
] as const;

describe.each(layouts)("saved by %s", (_, directory) => {
  const model = loadEmbeddingModel({ directory, device });
  const rows = cases.map(({ input, task }) =>
    typeof input === "string"
      ? model.tokenize({ text: input }, { promptName: task ?? undefined })
      : model.tokenize({ ids: Int32Array.from(input) }, {}),
  );

  test("the facts are those of the files", () => {
    expect(model).toMatchObject({
      facts: { family: facts.family, maxLength: facts.max_length },
      dim: facts.dim,
      pooling: facts.pooling,
      normalization: "l2",
      multiVector: true,
    });
  });

  test("token ids are the reference's, and those that fill up a query do not count", () => {
    rows.forEach((row, i) => {
      expect([...row.ids], cases[i]!.name).toEqual(cases[i]!.token_ids);
      expect(row.tokens, cases[i]!.name).toBe(cases[i]!.prompt_tokens);
    });
  });

  const expectReferenceVectors = (order: readonly number[]) => {
    const vectors = vectorsOf(
      model,
      order.map((index) => rows[index]!),
    );
    order.forEach((index, i) => {
      const { name, embedding } = cases[index]!;
      expect(vectors[i]!.length / facts.dim, name).toBe(embedding.length);
      expectClose(vectors[i]!, embedding.flat(), name);
    });
  };

  test("every case alone gives the reference's rows", () => {
    for (const index of rows.keys()) expectReferenceVectors([index]);
  });

  test("all cases in one batch, in any order, give the reference's rows", () => {
    const inOrder = [...rows.keys()];
    expectReferenceVectors(inOrder);
    for (const seed of [1, 2, 3]) expectReferenceVectors(shuffled(inOrder, seed));
  });
});

const variantsSchema = z.array(
  z.object({
    name: z.string(),
    fixture: z.string(),
    /** Of its MultiVectorEncoder. */
    settings: z.looseObject({ dense: z.boolean() }),
    cases: z.array(
      z.object({
        task: z.enum(["query", "document"]),
        input: z.string(),
        token_ids: z.array(z.int()),
        embedding: z.array(z.array(z.number())),
      }),
    ),
  }),
);

const variants = variantsSchema.parse(
  JSON.parse(readFileSync(fixture("multi-vector-variants.json"), "utf8")),
);

const PUNCTUATION = [..."!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"];

test.each(variants)("$name: the reference's rows, $fixture", (variant) => {
  const { fixture: name, cases: wanted, settings } = variant;
  const { directory } = asMultiVectorEncoder(name, { ...settings, skiplist_words: PUNCTUATION });
  const model = loadEmbeddingModel({ directory, device });
  const rows = wanted.map(({ input, task }) =>
    model.tokenize({ text: input }, { promptName: task }),
  );
  const vectors = vectorsOf(model, rows);
  wanted.forEach(({ input, token_ids, embedding }, i) => {
    expect([...rows[i]!.ids], input).toEqual(token_ids);
    expect(vectors[i]!.length / model.dim, input).toBe(embedding.length);
    expectClose(vectors[i]!, embedding.flat(), input);
  });
});

/** Finished vectors, [outputs, dim] of each row, computed in one batch. */
function vectorsOf(model: EmbeddingModel, rows: readonly EmbedRow[]): Float32Array[] {
  const raw = model.start(rows).read();
  let end = 0;
  return rows.map(({ outputs }) => {
    const own = raw.subarray(end * model.dim, (end + outputs) * model.dim);
    end += outputs;
    return model.finish(own, {});
  });
}
