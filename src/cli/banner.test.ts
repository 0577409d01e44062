import { expect, test } from "bun:test";
import { INFO, RERANKER_INFO } from "../dialects/testing/context.ts";
import type { EmbedderInfo } from "../worker/job.ts";
import { banner } from "./banner.ts";
import type { ModelSettings, ServeSettings } from "./settings.ts";

function model(id: string, kind: "embedding" | "reranker"): ModelSettings {
  const worker = { kind, directory: `/models/${id}`, device: "cpu", cacheLimitBytes: 0 } as const;
  return { id, names: [id], isDefault: false, queueDepth: 8, requestTimeoutMs: 1000, worker };
}

const EMBEDDER = model("tiny", "embedding");
const RERANKER = model("judge", "reranker");

function shown(
  changes: Partial<ServeSettings>,
  info: EmbedderInfo = INFO,
  url = "http://127.0.0.1:8080",
): string {
  const settings: ServeSettings = {
    embedderRanks: false,
    rawScores: false,
    listen: { host: "127.0.0.1", port: 8080 },
    apiKeys: [],
    corsOrigins: undefined,
    maxBodyBytes: 1,
    metrics: false,
    truncate: true,
    logFormat: "text",
    logLevel: "info",
    maxItems: 1,
    profile: false,
    notices: [],
    ...changes,
  };
  const models = {
    embedder: settings.embedder && info,
    reranker: settings.reranker && RERANKER_INFO,
  };
  return banner(settings, models, url, false);
}

test("an embedder alone: its facts and one line to try", () => {
  const text = shown({ embedder: EMBEDDER });
  expect(text).toMatch(/ model +tiny \(bert, float32\)\n +dim +8\n +max length +16 tokens\n/);
  expect(text).toContain("curl http://127.0.0.1:8080/v1/embeddings");
  expect(text).not.toContain("rerank");
});

test("a reranker alone: no vectors, and a line that ranks", () => {
  const text = shown({ reranker: RERANKER });
  expect(text).toMatch(
    / reranker +judge \(bert, float32\)\n +max length +16 tokens per pair\n +batch +up to 4096 tokens; long requests about 512 at a time, [^\n]*\n +device +cpu\n/,
  );
  expect(text).toContain("curl http://127.0.0.1:8080/v1/rerank -d '");
  expect(text).not.toMatch(/dim|pooling|\/v1\/embeddings/);
});

test.each([
  [{}, "up to 4096 tokens; long requests about 512 at a time, so that short ones go in between"],
  [{ sliceTokens: 4096 }, "up to 4096 tokens"],
  [{ batchTokens: 8, sliceTokens: 8 }, "up to 8 tokens; a longer text runs alone, and whole"],
])("the batch line tells the limit, and apart from it what was measured: %j", (changes, line) => {
  const text = shown({ embedder: EMBEDDER }, { ...INFO, ...changes });
  expect(text).toContain(`  batch       ${line}\n`);
});

test("the device line tells of a precision that was lowered", () => {
  const deviceOf = (info: EmbedderInfo) =>
    /^ +device +(.*)$/m.exec(shown({ embedder: EMBEDDER }, info))?.[1];
  expect(deviceOf(INFO)).toBe("cpu");
  expect(deviceOf({ ...INFO, cpuPrecision: "bf16" })).toBe("cpu, bf16 products");
  expect(deviceOf({ ...INFO, device: "gpu", cpuPrecision: undefined })).toBe("gpu");
});

test("both: rows and lines of both", () => {
  const text = shown({ embedder: EMBEDDER, reranker: RERANKER });
  expect(text).toMatch(/ model +tiny[^]* reranker +judge[^]*\/v1\/embeddings[^]*\/v1\/rerank/);
});

test("an embedder that ranks says so, and how", () => {
  expect(shown({ embedder: EMBEDDER })).not.toContain("ranking");
  const text = shown({ embedder: EMBEDDER, embedderRanks: true });
  expect(text).toMatch(/ ranking +by this embedder too, cosine/);
  expect(text).toContain("/v1/rerank");
  const multi = shown({ embedder: EMBEDDER, embedderRanks: true }, { ...INFO, multiVector: true });
  expect(multi).toMatch(/ ranking +by this embedder too, late interaction/);
});

test.each([
  ["http://0.0.0.0:8080", "http://127.0.0.1:8080"],
  ["https://[::]:8443", "https://[::1]:8443"],
  ["http://192.0.2.7:80", "http://192.0.2.7:80"],
])("on %s the line to paste calls %s", (url, called) => {
  const text = shown({ embedder: EMBEDDER }, INFO, url);
  expect(text).toContain(` ${url}\n`);
  expect(text).toContain(`curl ${called}/v1/embeddings`);
});
