/** The generative Qwen3 reranker against reference numbers, alone and beside other documents of its query. */
import { describe, expect, test } from "bun:test";
import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import { readCheckpoint } from "../../src/checkpoint/checkpoint.ts";
import { readYesNoParts } from "../../src/models/load-yes-no-reranker.ts";
import type { PairRow } from "../../src/pipeline/reranker.ts";
import { YesNoReranker } from "../../src/pipeline/yes-no-reranker.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { rerankCase, rerankReference } from "../fixtures/rerank-reference.ts";
import { expectClose, shuffled } from "./reference.ts";

/** Relative to max(1, the logit). */
const LOGIT_TOLERANCE = 2e-5;

const referenceSchema = z.object({
  max_length: z.int(),
  yes_token_id: z.int(),
  no_token_id: z.int(),
  prefix_tokens: z.int(),
  suffix_tokens: z.int(),
  cases: z.array(rerankCase.extend({ yes_logit: z.number(), no_logit: z.number() })),
});
type Case = z.output<typeof referenceSchema>["cases"][number];

const device = mx.openDevice("cpu");
const directory = fixture("rerank-qwen3");
const { cases, ...facts } = rerankReference("rerank-qwen3", referenceSchema);
const parts = readYesNoParts(readCheckpoint(directory), { device });
const model = new YesNoReranker(parts);
const { prompt } = parts;

/** As its numbers must be within tolerance of the reference's. */
function expectReference(wanted: Case, yes: number, no: number, logit: number): void {
  const close = (actual: number, value: number, what: string) => {
    const allowed = LOGIT_TOLERANCE * Math.max(1, Math.abs(value));
    expect(Math.abs(actual - value), `${wanted.name}: ${what}`).toBeLessThanOrEqual(allowed);
  };
  close(yes, wanted.yes_logit, "yes");
  close(no, wanted.no_logit, "no");
  close(logit, wanted.logit, "logit");
  const score = 1 / (1 + Math.exp(-logit));
  expect(Math.abs(score - wanted.score), `${wanted.name}: score`).toBeLessThanOrEqual(1e-5);
}

function expectReferences(wanted: readonly Case[], rows: readonly PairRow[]): void {
  const answers = mx.scope(() => model.answerLogits(rows).toFloat32());
  const logits = model.start(rows).read();
  expect(answers).toHaveLength(2 * rows.length);
  expect(logits).toHaveLength(rows.length);
  wanted.forEach((one, i) =>
    expectReference(one, answers[2 * i]!, answers[2 * i + 1]!, logits[i]!),
  );
}

test("the facts are those of the files", () => {
  expect(model).toMatchObject({ facts: { family: "qwen3", maxLength: facts.max_length } });
  expect([prompt.yes, prompt.no]).toEqual([facts.yes_token_id, facts.no_token_id]);
  expect(prompt.beginning).toHaveLength(facts.prefix_tokens);
  expect(prompt.end).toHaveLength(facts.suffix_tokens);
});

describe.each(cases.map((one) => [one.name, one] as const))("%s", (_, wanted) => {
  const { query, document, instruction } = wanted.input;

  test("the prompt is the reference's, token by token", () => {
    const shared = prompt.shared(query, instruction);
    const prepared = model.prepare(query, instruction);
    const row = prepared.pair(document);
    const whole = [...prompt.beginning, ...shared.ids, ...row.ids];
    expect(whole).toEqual(wanted.token_ids);
    expect(row.tokens).toBe(wanted.prompt_tokens);
    expect(row.truncated).toBe(wanted.prompt_tokens === facts.max_length);
    prepared.release();
  });

  test("alone it gives the reference logits and score", () => {
    const prepared = model.prepare(query, instruction);
    expectReferences([wanted], [prepared.pair(document)]);
    prepared.release();
  });

  test("beside the documents of all cases, in any order and in a second batch, it gives the same", () => {
    const prepared = model.prepare(query, instruction);
    const documents = [document, ...cases.map(({ input }) => input.document)];
    const rows = documents.map((text) => prepared.pair(text));
    const alone = model.start([rows[0]!]).read()[0]!;
    for (const seed of [1, 2, 3]) {
      const order = shuffled([...rows.keys()], seed);
      const batch = order.map((index) => rows[index]!);
      const logits = model.start(batch).read();
      expectClose([logits[order.indexOf(0)]!], [alone], `seed ${seed}`);
      expectReferences([wanted], [batch[order.indexOf(0)]!]);
    }
    prepared.release();
  });
});

test("all cases of one query in one batch give the reference logits", () => {
  const instructed = cases.filter(({ input }) => input.instruction !== undefined);
  const sameQuery = cases.filter(({ input }) => input.query === "how long should an egg boil");
  const plain = sameQuery.filter(({ input }) => input.instruction === undefined);
  for (const group of [instructed, plain]) {
    expect(group).toHaveLength(2);
    const prepared = model.prepare(group[0]!.input.query, group[0]!.input.instruction);
    expectReferences(
      group,
      group.map(({ input }) => prepared.pair(input.document)),
    );
    prepared.release();
  }
});

test("the instruction changes the score, and a blank one is none", () => {
  const logit = (instruction?: string) => {
    const prepared = model.prepare("how long should an egg boil", instruction);
    const [value] = model.start([prepared.pair("Six minutes.")]).read();
    prepared.release();
    return value!;
  };
  expect(Math.abs(logit("Retrieve cooking advice") - logit())).toBeGreaterThan(1e-3);
  expect(logit("  ")).toBe(logit());
});
