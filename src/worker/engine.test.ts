import { beforeAll, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import { loadEmbeddingModel } from "../models/load-embedder.ts";
import type { EmbeddingModel, EmbedRow } from "../pipeline/embedder.ts";
import type { BatchLimits } from "./batch-former.ts";
import { Engine } from "./engine.ts";
import type { Failure } from "./failure.ts";
import { Pace } from "./pace.ts";
import { embedderWorkload } from "./workload.ts";
import type { EmbedItem, EmbedJob, EmbedResult, Job, RerankJob, Result } from "./job.ts";

const CHECKPOINT = join(import.meta.dir, "../../test/fixtures/bert-mean");
const NO_LIMITS: BatchLimits = { budgetTokens: 1e6, maxRows: Number.POSITIVE_INFINITY };

let model: EmbeddingModel;
beforeAll(() => {
  mx.openDevice("cpu");
  model = loadEmbeddingModel({ directory: CHECKPOINT, device: "cpu" });
});

interface Call {
  readonly answer: Promise<Result>;
  /** Tells the engine that nobody waits any more. */
  cancel(): void;
}

/** An engine whose answers are promises, and a record of the batches that its model ran. */
function newEngine(limits: BatchLimits, onModel: EmbeddingModel = model, ahead = false) {
  const batches: (readonly EmbedRow[])[] = [];
  const calls = new Map<number, PromiseWithResolvers<Result>>();
  const started: number[] = [];
  const recorded = embedderWorkload({
    dim: onModel.dim,
    multiVector: onModel.multiVector,
    ownNormalize: onModel.ownNormalize,
    facts: onModel.facts,
    tokenizer: onModel.tokenizer,
    tokenize: (input, choice) => onModel.tokenize(input, choice),
    finish: (raw, options) => onModel.finish(raw, options),
    start: (rows) => {
      batches.push(rows);
      return onModel.start(rows);
    },
  });
  const engine = new Engine(recorded, {
    limits,
    pace: new Pace(),
    ahead,
    events: {
      started: (id) => void started.push(id),
      result: (id, result) => calls.get(id)?.resolve(result),
      failed: (id, failure) => calls.get(id)?.reject(failure),
    },
  });
  const submitJob = (job: Job): Call => {
    const id = calls.size;
    const abort = new SharedArrayBuffer(4);
    const call = Promise.withResolvers<Result>();
    calls.set(id, call);
    engine.submit(id, job, abort);
    return { answer: call.promise, cancel: () => void Atomics.store(new Int32Array(abort), 0, 1) };
  };
  const submit = (items: readonly EmbedItem[], fields: Partial<EmbedJob> = {}): Call => {
    const field = { name: "input", isList: true };
    return submitJob({ kind: "embed", items, field, truncate: true, ...fields });
  };
  const rank = (query: string, documents: readonly string[], fields: Partial<RerankJob> = {}) => {
    const items = documents.map((text) => ({ text }));
    const field = { name: "documents", isList: true };
    return submitJob({ kind: "rerank", query, items, field, truncate: true, ...fields });
  };
  return { submit, submitJob, rank, batches, started };
}

function texts(count: number): EmbedItem[] {
  return Array.from({ length: count }, (_, i) => ({ text: "tea ".repeat(1 + (i % 7)) + i }));
}

function embedding(result: Result): EmbedResult {
  if (result.kind !== "embed") throw new Error(`expected vectors, got ${result.kind}`);
  return result;
}

async function vectorsOf(call: Call): Promise<number[][]> {
  const { vectors, dim } = embedding(await call.answer);
  return Array.from({ length: vectors.length / dim }, (_, i) => [
    ...vectors.subarray(i * dim, (i + 1) * dim),
  ]);
}

function largestDifference(a: readonly number[][], b: readonly number[][]): number {
  return Math.max(...a.flatMap((row, i) => row.map((x, j) => Math.abs(x - (b[i]?.[j] ?? NaN)))));
}

async function failureOf(call: Call): Promise<Failure> {
  return call.answer.then(
    () => Promise.reject(new Error("the job was answered")),
    (failure: Failure) => failure,
  );
}

test("jobs that arrive together share one forward, and each gets its own vectors", async () => {
  const alone = newEngine(NO_LIMITS);
  const items = texts(12);
  const baseline: number[][] = [];
  for (const item of items) baseline.push(...(await vectorsOf(alone.submit([item]))));
  expect(alone.batches).toHaveLength(12);

  const together = newEngine(NO_LIMITS);
  const calls = [items.slice(0, 1), items.slice(1, 7), items.slice(7)].map((part) =>
    together.submit(part),
  );
  const vectors = (await Promise.all(calls.map(vectorsOf))).flat();
  expect(together.batches).toHaveLength(1);
  expect(largestDifference(vectors, baseline)).toBeLessThan(1e-5);
});

test("one long list is split by the token budget and by the cap on rows, and keeps its order", async () => {
  const items = texts(40);
  const whole = await vectorsOf(newEngine(NO_LIMITS).submit(items));
  const byTokens = newEngine({ ...NO_LIMITS, budgetTokens: 64 });
  expect(largestDifference(await vectorsOf(byTokens.submit(items)), whole)).toBeLessThan(1e-5);
  for (const rows of byTokens.batches) {
    expect(rows.reduce((sum, row) => sum + row.ids.length, 0)).toBeLessThanOrEqual(64);
  }
  const byRows = newEngine({ ...NO_LIMITS, maxRows: 3 });
  expect(largestDifference(await vectorsOf(byRows.submit(items)), whole)).toBeLessThan(1e-5);
  expect(Math.max(...byRows.batches.map((rows) => rows.length))).toBe(3);
});

test("a batch that is started before the one ahead of it is read mixes nothing up", async () => {
  const items = texts(40);
  const whole = await vectorsOf(newEngine(NO_LIMITS).submit(items));
  const ahead = newEngine({ ...NO_LIMITS, budgetTokens: 64 }, model, true);
  const calls = [items.slice(0, 25), items.slice(25)].map((part) => ahead.submit(part));
  const vectors = (await Promise.all(calls.map(vectorsOf))).flat();
  expect(largestDifference(vectors, whole)).toBeLessThan(1e-5);
});

test("a row over the token budget still runs, alone", async () => {
  const engine = newEngine({ ...NO_LIMITS, budgetTokens: 4 });
  expect(await vectorsOf(engine.submit([{ text: "a ".repeat(50) }]))).toHaveLength(1);
});

/** Which job each batch ran rows of, told by the first token of the texts. */
function jobsOf(batches: readonly (readonly EmbedRow[])[], markers: readonly string[]): string[] {
  const ids = markers.map((marker) => model.tokenize({ text: marker }, {}).ids[1]);
  return batches.map((rows) => {
    const found = markers.filter((_, i) => rows.some((row) => row.ids[1] === ids[i]));
    return found.join("+");
  });
}

function bulk(marker: string, count: number): EmbedItem[] {
  return Array.from({ length: count }, (_, i) => ({ text: `${marker} ${"tea ".repeat(20)}${i}` }));
}

test("a small job overtakes a bulk job that is under way", async () => {
  const engine = newEngine({ ...NO_LIMITS, budgetTokens: 256 });
  const big = engine.submit(bulk("b", 200));
  while (engine.batches.length < 2) await Bun.sleep(1);
  const before = engine.batches.length;
  await engine.submit([{ text: "q" }]).answer;
  // at most: the batch that ran, the one that was prepared, its own, and one prepared behind it
  expect(engine.batches.length - before).toBeLessThanOrEqual(4);
  expect(await vectorsOf(big)).toHaveLength(200);
});

test("a bulk job is overtaken a bounded number of times", async () => {
  const engine = newEngine({ ...NO_LIMITS, maxRows: 1 });
  const big = engine.submit(bulk("b", 30));
  const small = Array.from({ length: 12 }, (_, i) => engine.submit([{ text: `q ${i}` }]));
  await Promise.all([big, ...small].map((call) => call.answer));
  const runs = jobsOf(engine.batches, ["b", "q"]);
  expect(runs.slice(0, 9).join(" ")).toBe("q q b q q b q q b");
  expect(runs).toHaveLength(42);
});

test("bulk jobs take turns", async () => {
  const engine = newEngine({ ...NO_LIMITS, budgetTokens: 256 });
  await Promise.all([engine.submit(bulk("b", 40)).answer, engine.submit(bulk("c", 40)).answer]);
  const runs = jobsOf(engine.batches, ["b", "c"]);
  expect(runs.slice(0, 6)).toEqual(["b", "c", "b", "c", "b", "c"]);
});

test("only a few bulk jobs share the model; the others wait, where admission counts them", async () => {
  const engine = newEngine({ ...NO_LIMITS, budgetTokens: 256 });
  const jobs = Array.from({ length: 7 }, (_, i) => engine.submit(bulk("b", 40 + i)));
  while (engine.batches.length < 12) await Bun.sleep(1);
  expect(engine.started).toEqual([0, 1, 2, 3]);
  for (const job of jobs) await job.answer;
  expect(engine.started).toEqual([0, 1, 2, 3, 4, 5, 6]);
});

test("rows of a window leave it longest first, and come back in the order of the request", async () => {
  const engine = newEngine({ ...NO_LIMITS, maxRows: 8 });
  const items = texts(40);
  await engine.submit(items).answer;
  const lengths = engine.batches.flat().map((row) => row.ids.length);
  expect(lengths).toEqual(lengths.toSorted((a, b) => b - a));
});

test("equal rows of a batch are computed once, also across jobs", async () => {
  const engine = newEngine(NO_LIMITS);
  const calls = [
    engine.submit([{ text: "q" }, { text: "w" }, { text: "q" }]),
    engine.submit([{ text: "q" }]),
  ];
  const [[q0, w, q1] = [], [q2] = []] = await Promise.all(calls.map(vectorsOf));
  expect(engine.batches.map((rows) => rows.length)).toEqual([2]);
  expect(q1).toEqual(q0!);
  expect(q2).toEqual(q0!);
  expect(w).not.toEqual(q0!);
});

test("a job whose client left is dropped between batches; the others go on", async () => {
  const engine = newEngine({ ...NO_LIMITS, maxRows: 1 });
  const gone = engine.submit(texts(200));
  const other = engine.submit([{ text: "still here" }]);
  while (engine.batches.length < 3) await Bun.sleep(1);
  gone.cancel();
  expect((await failureOf(gone)).reason).toBe("cancelled");
  expect(await vectorsOf(other)).toHaveLength(1);
  expect(engine.batches.length).toBeLessThan(150);
});

test("an id that the tokenizer has no text for is named", async () => {
  const { submitJob } = newEngine(NO_LIMITS);
  const { vocabSize } = model.tokenizer;
  const failure = await failureOf(
    submitJob({ kind: "detokenize", ids: Int32Array.of(5, vocabSize) }),
  );
  expect(failure.reason).toBe("invalid");
  expect(failure.param).toBe("tokens[1]");
});

test("a text that the model can't read fails its job alone, and names the item", async () => {
  const engine = newEngine(NO_LIMITS);
  const { vocabSize } = model.facts;
  const items = [{ text: "fine" }, { ids: Int32Array.of(vocabSize) }];
  const failure = await failureOf(engine.submit(items));
  expect(failure.reason).toBe("invalid");
  expect(failure.param).toBe("input[1]");
  expect(await vectorsOf(engine.submit([{ text: "fine" }]))).toHaveLength(1);
});

test("a job that can't even be opened fails alone", async () => {
  const engine = newEngine(NO_LIMITS);
  const failure = await failureOf(engine.submit([{ text: "a" }], { dimensions: 2 ** 40 }));
  expect(failure.reason).toBe("internal");
  expect(await vectorsOf(engine.submit([{ text: "fine" }]))).toHaveLength(1);
});

test("a job that refuses truncation fails whole, names the item, and runs none of its rows", async () => {
  const engine = newEngine({ ...NO_LIMITS, maxRows: 1 });
  const items = [{ text: "short" }, { text: "long ".repeat(500) }];
  const failure = await failureOf(engine.submit(items, { truncate: false }));
  expect(failure.reason).toBe("invalid");
  expect(failure.param).toBe("input[1]");
  expect(failure.message).toContain("too large");
  expect(failure.message).toContain("exceeds maximum context length");
  expect(engine.batches).toHaveLength(0);
  const { truncated, tokens } = embedding(await engine.submit(items).answer);
  expect(truncated).toBe(1);
  expect([...tokens]).toEqual([expect.any(Number), 96]);
});

test("a job that computes NaN fails alone; those that shared its batch are answered", async () => {
  const poisoned = loadEmbeddingModel({ directory: withNanTokenRow(52), device: "cpu" });
  const engine = newEngine(NO_LIMITS, poisoned);
  const [before, culprit, after] = [["tea"], ["coffee", "q"], ["bread"]].map((words) =>
    engine.submit(words.map((text) => ({ text }))),
  );
  const failure = await failureOf(culprit!);
  expect(failure.reason).toBe("internal");
  expect(failure.message).toContain("NaN");
  const [a] = await vectorsOf(before!);
  const [b] = await vectorsOf(after!);
  expect([...a!, ...b!].every(Number.isFinite)).toBe(true);
});

test("an embedder ranks by the cosine of query and document, and reads the query once", async () => {
  const engine = newEngine(NO_LIMITS);
  const documents = ["tea with milk", "a train", "coffee", "a train"];
  const [query = [], ...vectors] = await vectorsOf(
    engine.submit(["warm drinks", ...documents].map((text) => ({ text }))),
  );
  const result = await engine.rank("warm drinks", documents).answer;
  if (result.kind !== "rerank") throw new Error(`expected scores, got ${result.kind}`);
  const cosines = vectors.map((vector) => vector.reduce((sum, x, i) => sum + x * query[i]!, 0));
  result.scores.forEach((score, i) => expect(score).toBeCloseTo(cosines[i]!, 5));
  expect(result.rawScores).toEqual(result.scores);
  expect(result.scores[1]).toBe(result.scores[3]!);
  const { tokens } = embedding(
    await engine.submit([{ text: "warm drinks" }, ...documents.map((text) => ({ text }))]).answer,
  );
  expect([...result.tokens]).toEqual([tokens[0]! + tokens[1]!, ...tokens.slice(2)]);
});

test("an over-long query of a ranking that refuses truncation is named", async () => {
  const engine = newEngine(NO_LIMITS);
  const failure = await failureOf(engine.rank("long ".repeat(500), ["short"], { truncate: false }));
  expect(failure.param).toBe("query");
  const inDocument = engine.rank("short", ["short", "long ".repeat(500)], { truncate: false });
  expect((await failureOf(inDocument)).param).toBe("documents[1]");
});

/** A copy of the checkpoint where the embedding of one token is NaN. */
function withNanTokenRow(token: number): string {
  const directory = mkdtempSync(join(tmpdir(), "mlxcel-nan-"));
  cpSync(CHECKPOINT, directory, { recursive: true });
  const path = join(directory, "model.safetensors");
  const file = readFileSync(path);
  const headerBytes = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.toString("utf8", 8, 8 + headerBytes));
  const { shape, data_offsets } = header["embeddings.word_embeddings.weight"];
  const width: number = shape[1];
  const start = 8 + headerBytes + data_offsets[0] + token * width * 4;
  for (let i = 0; i < width; i++) file.writeFloatLE(Number.NaN, start + i * 4);
  writeFileSync(path, file);
  return directory;
}
