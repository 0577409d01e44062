/** What every sequence classifier must do: give the reference's ids, logits and scores, alone and in any batch. */
import { describe, expect, test } from "bun:test";
import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import { loadReranker } from "../../src/models/load-reranker.ts";
import type { PairRow } from "../../src/pipeline/reranker.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { rerankCase, rerankReference } from "../fixtures/rerank-reference.ts";
import { shuffled } from "./reference.ts";

/** Relative to max(1, the logit). */
const LOGIT_TOLERANCE = 2e-5;
const SCORE_TOLERANCE = 1e-5;

const referenceSchema = z.object({
  family: z.string(),
  max_length: z.int(),
  cases: z.array(rerankCase.extend({ token_type_ids: z.array(z.int()).optional() })).min(1),
});

const device = mx.openDevice("cpu");

export function describeCrossEncoders(fixtures: readonly string[]): void {
  describe.each(fixtures)("%s", ranksAsReference);
}

function ranksAsReference(name: string): void {
  const { cases, ...facts } = rerankReference(name, referenceSchema);
  const model = loadReranker({ directory: fixture(name), device });
  const rows = cases.map(({ input }) => model.prepare(input.query).pair(input.document));

  test("the facts are those of the files", () => {
    const { family, max_length: maxLength } = facts;
    expect(model).toMatchObject({ facts: { family, maxLength }, takesInstruction: false });
  });

  test("token and type ids are those of the reference tokenizer, cut by longest_first", () => {
    const cut = ["long_doc", "long_query", "both_long"];
    rows.forEach(({ ids, typeIds, tokens, truncated }, i) => {
      const wanted = cases[i]!;
      expect([...ids], wanted.name).toEqual(wanted.token_ids);
      if (wanted.token_type_ids) expect([...typeIds!]).toEqual(wanted.token_type_ids);
      expect(tokens).toBe(wanted.prompt_tokens);
      expect(truncated, wanted.name).toBe(cut.includes(wanted.name));
    });
  });

  const expectReference = (indices: readonly number[], batch: readonly PairRow[]) => {
    const logits = model.start(batch).read();
    expect(logits).toHaveLength(indices.length);
    indices.forEach((index, i) => {
      const { name: caseName, logit, score } = cases[index]!;
      const allowed = LOGIT_TOLERANCE * Math.max(1, Math.abs(logit));
      expect(Math.abs(logits[i]! - logit), `${caseName}: logit`).toBeLessThanOrEqual(allowed);
      const actual = 1 / (1 + Math.exp(-logits[i]!));
      expect(Math.abs(actual - score), `${caseName}: score`).toBeLessThanOrEqual(SCORE_TOLERANCE);
    });
  };

  test("every case alone gives the reference logit and score", () => {
    rows.forEach((row, i) => expectReference([i], [row]));
  });

  test("all cases in one batch, in any order, give the reference logits and scores", () => {
    expectReference([...rows.keys()], rows);
    for (const seed of [1, 2, 3]) {
      const order = shuffled([...rows.keys()], seed);
      const batch = order.map((index) => rows[index]!);
      expectReference(order, batch);
    }
  });
}
