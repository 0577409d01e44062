/** A server under test, and what it answers outside of the measurements. */
import { z } from "zod";
import { jsonOf } from "../../hub/json-text.ts";
import { UsageError } from "../usage-error.ts";
import { NetworkFault } from "./network-fault.ts";
import type { BenchRequest } from "./scenarios.ts";

export interface Target {
  readonly name: string;
  /** Without /v1 and without a slash at the end. */
  readonly url: string;
  /** Where a server of its own ranks; else `url` does. */
  readonly rerankUrl?: string | undefined;
  /** What requests name as their model; absent: nothing. */
  readonly model?: string | undefined;
  readonly rerankModel?: string | undefined;
  /** Its processes, as far as they are known: for memory and processor time. */
  readonly pids: readonly number[];
  /** Computes with fewer bits: how far its vectors are from those of the others is told, not judged. */
  readonly reducedPrecision?: boolean | undefined;
  /** From starting its process to its first answer, where it was started here. */
  readonly startupMs?: number | undefined;
}

const ACCEPTS =
  "[NAME=]URL, with pid=N, rerank-url=URL, model=NAME or rerank-model=NAME behind commas";

/**
 * Reads `--target`: `http://127.0.0.1:8080`, `name=http://127.0.0.1:8080/v1,pid=1234,model=m`.
 * @throws UsageError
 */
export function parseTarget(text: string): Target {
  const [first = "", ...settings] = text.split(",").map((part) => part.trim());
  const [, name, address = first] = /^([^=:/]+)=(.*)$/.exec(first) ?? [];
  const target = { name: name ?? first.replace(/^https?:\/\//, ""), url: baseUrl(address, text) };
  const pids: number[] = [];
  const given: { rerankUrl?: string; model?: string; rerankModel?: string } = {};
  for (const setting of settings) {
    const [, key, value = ""] = /^([a-z-]+)=(.+)$/.exec(setting) ?? [];
    if (key === "pid" && /^[1-9]\d*$/.test(value)) pids.push(Number(value));
    else if (key === "rerank-url") given.rerankUrl = baseUrl(value, text);
    else if (key === "model") given.model = value;
    else if (key === "rerank-model") given.rerankModel = value;
    else throw new UsageError(`--target takes ${ACCEPTS}, not "${text}"`);
  }
  return { ...target, ...given, pids };
}

function baseUrl(address: string, text: string): string {
  if (!/^https?:\/\//.test(address) || !URL.canParse(address)) {
    throw new UsageError(`--target takes ${ACCEPTS}, not "${text}"`);
  }
  return address.replace(/\/+$/, "").replace(/\/v1$/, "");
}

/** Where a request goes. */
export function urlOf({ task }: BenchRequest, target: Target): string {
  return task === "embed"
    ? `${target.url}/v1/embeddings`
    : `${target.rerankUrl ?? target.url}/v1/rerank`;
}

/** The body of a request; undefined fields are left out. */
export function bodyOf(request: BenchRequest, { model, rerankModel }: Target): string {
  if (request.task === "rerank") {
    const { query, documents } = request;
    return JSON.stringify({ model: rerankModel, query, documents });
  }
  const [first, ...others] = request.texts;
  return JSON.stringify({ model, input: others.length === 0 ? first : request.texts });
}

const Embeddings = z.object({ data: z.array(z.object({ embedding: z.array(z.number()) })) });
const Ranking = z.object({
  results: z.array(z.object({ index: z.int(), relevance_score: z.number() })),
});
const Tokens = z.object({ tokens: z.array(z.unknown()) });
const Limits = z.object({ max_input_length: z.int().min(1) });
const Props = z.object({
  models: z.array(z.object({ kind: z.string(), max_length: z.int().min(1) })),
});

/** @throws Error one line, when it does not answer with a vector per text */
export async function embed(target: Target, texts: readonly string[]): Promise<number[][]> {
  const request = { task: "embed", texts, tokens: 0 } as const;
  const answer = await post(target, urlOf(request, target), bodyOf(request, target));
  const parsed = Embeddings.safeParse(answer);
  if (!parsed.success || parsed.data.data.length !== texts.length) {
    throw new Error(
      `target ${target.name}: /v1/embeddings answers something else than a list of ${texts.length} embeddings`,
    );
  }
  return parsed.data.data.map(({ embedding }) => embedding);
}

/**
 * Scores in the order of the documents.
 * @throws Error one line, when it does not answer with a score per document
 */
export async function rank(
  target: Target,
  query: string,
  documents: readonly string[],
): Promise<number[]> {
  const request = { task: "rerank", query, documents, tokens: 0 } as const;
  const answer = await post(target, urlOf(request, target), bodyOf(request, target));
  const parsed = Ranking.safeParse(answer);
  const results = parsed.success ? parsed.data.results : [];
  const scores = new Map(results.map((result) => [result.index, result.relevance_score]));
  return documents.map((_, i) => {
    const score = scores.get(i);
    if (score !== undefined) return score;
    throw new Error(
      `target ${target.name}: /v1/rerank answers something else than a score for each of ${documents.length} documents`,
    );
  });
}

/**
 * Tokens of a text, specials included, by llama-server's /tokenize.
 * @throws Error one line, when it has no such route
 */
export async function countTokens(
  target: Target,
  task: BenchRequest["task"],
  text: string,
): Promise<number> {
  const ranks = task === "rerank";
  const url = ranks ? (target.rerankUrl ?? target.url) : target.url;
  const model = ranks ? target.rerankModel : target.model;
  const body = JSON.stringify({ content: text, add_special: true, model });
  const parsed = Tokens.safeParse(await post(target, `${url}/tokenize`, body));
  if (parsed.success) return parsed.data.tokens.length;
  throw new Error(`target ${target.name}: /tokenize answers something else than a list of tokens`);
}

/** The longest text that it reads whole, by TEI's /info; undefined where it does not say. */
export async function maxTokens(target: Target): Promise<number | undefined> {
  return Limits.safeParse(await got(`${target.url}/info`)).data?.max_input_length;
}

/** The longest pair that it ranks whole, by /props, else by TEI's /info; undefined where neither says. */
export async function maxPairTokens(target: Target): Promise<number | undefined> {
  const url = target.rerankUrl ?? target.url;
  const { data } = Props.safeParse(await got(`${url}/props`));
  const ranker = data?.models.find(({ kind }) => kind !== "embedding");
  return ranker?.max_length ?? (await maxTokens({ ...target, url }));
}

/** undefined where a server has no such route. */
async function got(url: string): Promise<unknown> {
  const response = await fetch(url);
  const answer = await response.text();
  return response.ok ? jsonOf(answer) : undefined;
}

async function post(target: Target, url: string, body: string): Promise<unknown> {
  const path = new URL(url).pathname;
  let response: Response;
  let answer: string;
  try {
    const headers = { "content-type": "application/json" };
    response = await fetch(url, { method: "POST", headers, body });
    answer = await response.text();
  } catch (error) {
    throw new NetworkFault(`target ${target.name}`, url, error);
  }
  if (response.ok) return jsonOf(answer);
  throw new Error(
    `target ${target.name}: ${path} answers ${response.status}: ${answer.slice(0, 200).replace(/\s+/g, " ")}`,
  );
}
