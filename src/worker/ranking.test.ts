import { beforeAll, expect, test } from "bun:test";
import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { rerankCase, rerankReference } from "../../test/fixtures/rerank-reference.ts";
import { loadReranker } from "../models/load-reranker.ts";
import type { PairRow, PreparedQuery, Reranker } from "../pipeline/reranker.ts";
import { Engine } from "./engine.ts";
import type { Failure } from "./failure.ts";
import type { RerankJob, RerankResult, Result } from "./job.ts";
import { Pace } from "./pace.ts";
import { rerankerWorkload } from "./workload.ts";

const NO_LIMITS = { budgetTokens: 1e6, maxRows: Number.POSITIVE_INFINITY };
const referenceSchema = z.object({ cases: z.array(rerankCase) });

beforeAll(() => void mx.openDevice("cpu"));

/** A reranker that notes the batches that it runs and the queries that it lets go. */
function recording(model: Reranker, batches: (readonly PairRow[])[], released: string[]): Reranker {
  return {
    facts: model.facts,
    takesInstruction: model.takesInstruction,
    tokenizer: model.tokenizer,
    prepare: (query, instruction): PreparedQuery => {
      const prepared = model.prepare(query, instruction);
      return {
        pair: (document) => prepared.pair(document),
        release: () => {
          released.push(query);
          prepared.release();
        },
      };
    },
    start: (rows) => {
      batches.push(rows);
      return model.start(rows);
    },
  };
}

/** An engine over a real reranker, with a record of its batches and of the queries that it let go. */
function newEngine(name: string, limits = NO_LIMITS) {
  const model = loadReranker({ directory: fixture(name), device: "cpu" });
  const batches: (readonly PairRow[])[] = [];
  const released: string[] = [];
  const calls = new Map<number, PromiseWithResolvers<Result>>();
  const recorded = recording(model, batches, released);
  const engine = new Engine(rerankerWorkload(recorded), {
    limits,
    pace: new Pace(),
    ahead: false,
    events: {
      started: () => {},
      result: (id, result) => calls.get(id)?.resolve(result),
      failed: (id, failure) => calls.get(id)?.reject(failure),
    },
  });
  const rank = async (
    query: string,
    documents: readonly string[],
    fields: Partial<RerankJob> = {},
  ): Promise<RerankResult> => {
    const id = calls.size;
    const call = Promise.withResolvers<Result>();
    calls.set(id, call);
    const job: RerankJob = {
      kind: "rerank",
      query,
      items: documents.map((text) => ({ text })),
      field: { name: "documents", isList: true },
      truncate: true,
      ...fields,
    };
    engine.submit(id, job, new SharedArrayBuffer(4));
    const result = await call.promise;
    if (result.kind !== "rerank") throw new Error(`expected scores, got ${result.kind}`);
    return result;
  };
  return { rank, batches, released };
}

const RERANKERS = ["rerank-bert", "rerank-xlm-roberta", "rerank-modernbert-mean", "rerank-qwen3"];

test.each(RERANKERS)(
  "%s: scores are those of the reference, whatever shares the batch",
  async (name) => {
    const { cases } = rerankReference(name, referenceSchema);
    const engine = newEngine(name, { budgetTokens: 700, maxRows: 5 });
    const results = await Promise.all(
      cases.map(({ input: { query, document, instruction } }) =>
        engine.rank(query, [document, "an unrelated line", document], {
          instruction,
        }),
      ),
    );
    results.forEach(({ scores, rawScores, tokens }, i) => {
      const { logit, score, token_ids } = cases[i]!;
      const tolerance = 2e-5 * Math.max(1, Math.abs(logit));
      for (const at of [0, 2]) {
        expect(Math.abs(rawScores[at]! - logit)).toBeLessThan(tolerance);
        expect(Math.abs(scores[at]! - score)).toBeLessThan(1e-5);
        expect(tokens[at]).toBe(token_ids.length);
      }
    });
  },
);

test("a batch holds rows of one shared beginning only, and the beginning is let go with its job", async () => {
  const engine = newEngine("rerank-qwen3");
  await Promise.all([
    engine.rank("first query", ["a", "b", "c"]),
    engine.rank("second query", ["a", "b"]),
  ]);
  for (const rows of engine.batches) {
    expect(new Set(rows.map((row) => row.prefix)).size).toBe(1);
  }
  expect(engine.batches.map((rows) => rows.length)).toEqual([3, 2]);
  expect(engine.released.toSorted()).toEqual(["first query", "second query"]);
});

test("a job that fails lets its query go as well", async () => {
  const engine = newEngine("rerank-qwen3");
  const failure = await engine
    .rank("q", ["fine", "long ".repeat(3000)], { truncate: false })
    .then(() => undefined)
    .catch((error: Failure) => error);
  expect(failure?.param).toBe("documents[1]");
  expect(engine.released).toEqual(["q"]);
  expect(engine.batches).toHaveLength(0);
});

test("logits 9 and 10 stay apart as scores", async () => {
  const { PairTask } = await import("./pair-task.ts");
  const pair = { ids: Int32Array.of(1), tokens: 1, limit: 8, truncated: false };
  const query: PreparedQuery = { pair: () => pair, release: () => {} };
  const job: RerankJob = {
    kind: "rerank",
    query: "q",
    items: [{ text: "a" }, { text: "b" }],
    field: { name: "documents", isList: true },
    truncate: true,
  };
  const task = new PairTask(0, new SharedArrayBuffer(4), job, {
    prepare: () => query,
    facts: { family: "bert", maxLength: 8, vocabSize: 2, storedDtype: "F32", loadNotes: [] },
  });
  task.finishItem(0, Float32Array.of(9));
  task.finishItem(1, Float32Array.of(10));
  const { scores } = task.result();
  expect(scores[0]).toBeCloseTo(0.99987661, 7);
  expect(scores[1]).toBeCloseTo(0.9999546, 7);
  expect(scores[0]).toBeLessThan(scores[1]!);
});
