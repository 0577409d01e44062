/** Jobs on a real model with a vector per token. */
import { beforeAll, expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { loadEmbeddingModel } from "../models/load-embedder.ts";
import type { EmbeddingModel, EmbedRow } from "../pipeline/embedder.ts";
import { maxSim } from "../pipeline/max-sim.ts";
import { Engine } from "./engine.ts";
import type { EmbedJob, RerankJob, Result } from "./job.ts";
import { LateInteractionTask } from "./late-interaction-task.ts";
import { Pace } from "./pace.ts";
import { embedderWorkload } from "./workload.ts";

let model: EmbeddingModel;
beforeAll(() => {
  const device = mx.openDevice("cpu");
  model = loadEmbeddingModel({ directory: fixture("colbert-bert"), device });
});

const field = { name: "documents", isList: true };
const QUERY = "an egg";
const DOCUMENTS = ["eggs, boiled", "the old fox and the engine of the morning", "!"];

function vectorsOf(text: string, promptName: "query" | "document"): Float32Array {
  return model.finish(model.start([model.tokenize({ text }, { promptName })]).read(), {});
}

function run(job: EmbedJob | RerankJob, budgetTokens: number) {
  const batches: (readonly EmbedRow[])[] = [];
  const answer = Promise.withResolvers<Result>();
  const workload = embedderWorkload(model);
  const start = (rows: readonly EmbedRow[]) => {
    batches.push(rows);
    return workload.start(rows);
  };
  const engine = new Engine(
    { ...workload, start },
    {
      limits: { budgetTokens, maxRows: Number.POSITIVE_INFINITY },
      pace: new Pace(),
      ahead: false,
      events: {
        started: () => {},
        result: (_, result) => answer.resolve(result),
        failed: (_, failure) => answer.reject(failure),
      },
    },
  );
  engine.submit(0, job, new SharedArrayBuffer(4));
  return { batches, answer: answer.promise };
}

test.each([1e6, 1])(
  "MaxSim of all documents, whether the query runs with them or in a batch of its own (%d tokens)",
  async (budgetTokens) => {
    const items = DOCUMENTS.map((text) => ({ text }));
    const job: RerankJob = { kind: "rerank", query: QUERY, items, field, truncate: true };
    const { batches, answer } = run(job, budgetTokens);
    const result = await answer;
    if (result.kind !== "rerank") throw new Error(`expected scores, got ${result.kind}`);
    const query = vectorsOf(QUERY, "query");
    DOCUMENTS.forEach((document, i) => {
      const wanted = maxSim(query, vectorsOf(document, "document"), model.dim);
      expect(result.scores[i]).toBeCloseTo(wanted.mean, 5);
      expect(result.rawScores[i]).toBeCloseTo(wanted.sum, 4);
    });
    expect(batches).toHaveLength(budgetTokens === 1 ? 1 + DOCUMENTS.length : 1);
  },
);

test("documents that are done before the query wait for it", () => {
  const job: RerankJob = {
    ...{ kind: "rerank", query: QUERY, field, truncate: true },
    items: DOCUMENTS.map((text) => ({ text })),
  };
  const [query, ...documents] = [QUERY, ...DOCUMENTS].map((text, i) => {
    const row = model.tokenize({ text }, { promptName: i === 0 ? "query" : "document" });
    return model.start([row]).read();
  });
  const scoresInOrder = (order: readonly number[]) => {
    const task = new LateInteractionTask(0, new SharedArrayBuffer(4), job, model);
    for (const item of order) task.finishItem(item, [query, ...documents][item]!);
    return task.result().scores;
  };
  const inOrder = scoresInOrder([0, 1, 2, 3]);
  expect(scoresInOrder([2, 3, 0, 1])).toEqual(inOrder);
  expect(scoresInOrder([3, 2, 1, 0])).toEqual(inOrder);
});

test("items keep their own rows, and equal token ids are computed once unless they give other rows", async () => {
  const document = "eggs, boiled";
  const { ids } = model.tokenize({ text: document }, { promptName: "document" });
  const items = [{ text: document }, { ids }, { text: document }, { text: "fox" }];
  const { batches, answer } = run(
    { kind: "embed", items, field, promptName: "document", truncate: true },
    1e6,
  );
  const result = await answer;
  if (result.kind !== "embed") throw new Error(`expected vectors, got ${result.kind}`);
  const alone = [vectorsOf(document, "document"), vectorsOf("fox", "document")];
  const [first, all, again, fox] = result.rowsPerItem!;
  expect([first, again, fox]).toEqual(
    [alone[0], alone[0], alone[1]].map((v) => v!.length / model.dim),
  );
  expect(all).toBe(ids.length);
  expect(all).toBeGreaterThan(first!);
  expect(batches.map((rows) => rows.length)).toEqual([3]);
  const end = (first! + all!) * model.dim;
  const thirdItem = result.vectors.subarray(end, end + alone[0]!.length);
  thirdItem.forEach((value, i) => expect(value).toBeCloseTo(alone[0]![i]!, 5));
});
