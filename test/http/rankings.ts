/** Reads and checks what the rerank routes answer, and knows the reference's scores. */
import { expect } from "bun:test";
import { z } from "zod";
import { rerankCase, rerankReference } from "../fixtures/rerank-reference.ts";
import type { Server } from "../server.ts";
import { okJson } from "./answers.ts";

/** All of them have one handler. */
export const RERANK_PATHS = [
  "/v1/rerank",
  "/v1/reranking",
  "/rerank",
  "/reranking",
  "/v2/rerank",
] as const;

const Reference = z.object({ max_length: z.int(), cases: z.array(rerankCase) });

export interface ReferencePair {
  readonly name: string;
  readonly query: string;
  readonly document: string;
  readonly instruction?: string | undefined;
  readonly tokens: number;
  readonly logit: number;
  readonly score: number;
}

function reference(fixtureName: string): z.output<typeof Reference> {
  return rerankReference(fixtureName, Reference);
}

/** The reference's pairs, save the one whose document is blank: the routes refuse that. */
export function referencePairs(fixtureName: string): ReferencePair[] {
  return reference(fixtureName).cases.flatMap(({ name, input, prompt_tokens, logit, score }) =>
    input.document.trim() === "" ? [] : [{ name, ...input, tokens: prompt_tokens, logit, score }],
  );
}

export function referencePair(fixtureName: string, caseName: string): ReferencePair {
  const found = referencePairs(fixtureName).find(({ name }) => name === caseName);
  if (!found) throw new Error(`${fixtureName} has no case ${caseName}`);
  return found;
}

/** Tokens of the longest pair. */
export function pairLimit(fixtureName: string): number {
  return reference(fixtureName).max_length;
}

const EnvelopeEntry = z.strictObject({
  index: z.int(),
  relevance_score: z.number(),
  document: z.unknown().optional(),
});
const Envelope = z.strictObject({
  model: z.string(),
  object: z.literal("list"),
  results: z.array(EnvelopeEntry),
  usage: z.strictObject({ prompt_tokens: z.number(), total_tokens: z.number() }),
});
const BareEntry = z.strictObject({
  index: z.int(),
  score: z.number(),
  text: z.unknown().optional(),
});

export interface Rank {
  readonly index: number;
  readonly score: number;
  /** The document as it was sent; absent unless the request asked for it. */
  readonly echo?: unknown;
}

export interface Ranking {
  /** Best first. */
  readonly ranks: readonly Rank[];
  readonly model: string;
  readonly tokens: number;
  /** Value of the header that counts cut pairs. */
  readonly truncated: string | null;
}

/** Posts `documents` and insists on a complete envelope in order. */
export async function rank(
  server: Server,
  body: unknown,
  path: string = "/v1/rerank",
): Promise<Ranking> {
  const response = await server.post(path, body);
  const { model, results, usage } = Envelope.parse(await okJson(response));
  expect(usage.total_tokens).toBe(usage.prompt_tokens);
  const ranks = results.map(({ index, relevance_score, ...rest }) => ({
    index,
    score: relevance_score,
    ...("document" in rest ? { echo: rest.document } : {}),
  }));
  expectOrder(ranks);
  const truncated = response.headers.get("x-mlxcel-truncated");
  return { ranks, model, tokens: usage.prompt_tokens, truncated };
}

/** Posts `texts` and insists on a bare list in order. */
export async function rankBare(
  server: Server,
  body: unknown,
  path: string = "/rerank",
): Promise<readonly Rank[]> {
  const entries = z.array(BareEntry).parse(await okJson(await server.post(path, body)));
  const ranks = entries.map(({ index, score, ...rest }) => ({
    index,
    score,
    ...("text" in rest ? { echo: rest.text } : {}),
  }));
  expectOrder(ranks);
  return ranks;
}

/** Best first, equals by ascending index, no document twice. */
function expectOrder(ranks: readonly Rank[]): void {
  expect(ranks).toEqual(ranks.toSorted((a, b) => b.score - a.score || a.index - b.index));
  expect(new Set(ranks.map(({ index }) => index)).size).toBe(ranks.length);
}

/** Scores in the order of the request. */
export function scoresOf(ranks: readonly Rank[]): number[] {
  const scores = new Array<number>(ranks.length).fill(Number.NaN);
  for (const { index, score } of ranks) scores[index] = score;
  return scores;
}

/** The scores of documents under one query, in the order of the documents. */
export async function scores(
  server: Server,
  query: string,
  documents: readonly unknown[],
  options: Record<string, unknown> = {},
): Promise<number[]> {
  const { ranks } = await rank(server, { query, documents, ...options });
  expect(ranks).toHaveLength(documents.length);
  return scoresOf(ranks);
}

/** Probabilities or cosines, equal within the accuracy of f32. */
export function expectScores(actual: readonly number[], wanted: readonly number[]): void {
  expectWithin(actual, wanted, () => 1e-5);
}

/** Equal within 2e-5 x max(1, |logit|). */
export function expectLogits(actual: readonly number[], wanted: readonly number[]): void {
  expectWithin(actual, wanted, (logit) => 2e-5 * Math.max(1, Math.abs(logit)));
}

function expectWithin(
  actual: readonly number[],
  wanted: readonly number[],
  allowed: (value: number) => number,
): void {
  expect(actual).toHaveLength(wanted.length);
  wanted.forEach((value, i) => {
    const difference = Math.abs((actual[i] ?? Number.NaN) - value);
    expect(difference, `score ${i}`).toBeLessThanOrEqual(allowed(value));
  });
}

/** The server still ranks. */
export async function expectRanks(server: Server): Promise<void> {
  expect((await rank(server, { query: "ok", documents: ["ok"] })).ranks).toHaveLength(1);
}

/** Embeddings of a server that has no embedder. */
export async function expectNoEmbeddings(server: Server): Promise<void> {
  for (const path of ["/v1/embeddings", "/embedding", "/embeddings", "/embed"]) {
    const response = await server.post(path, { input: "a", inputs: "a" });
    expect(response.status).toBe(501);
    expect(await response.json()).toMatchObject({
      error: { type: "not_implemented", message: expect.stringContaining("--embedding-model") },
    });
  }
}
