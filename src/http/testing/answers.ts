import { z } from "zod";

const ENVELOPE = z.strictObject({
  error: z.strictObject({
    message: z.string().min(1),
    type: z.string(),
    code: z.string().nullable(),
    param: z.string().nullable(),
  }),
});

const vector = z.array(z.number().transform(Math.fround));

const EMBEDDINGS = z.strictObject({
  object: z.literal("list"),
  data: z.array(
    z.strictObject({ object: z.literal("embedding"), index: z.number(), embedding: vector }),
  ),
  model: z.string(),
  usage: z.strictObject({ prompt_tokens: z.number(), total_tokens: z.number() }),
});

const score = z.number().transform(Math.fround);

const RANKED = z.strictObject({
  model: z.string(),
  object: z.literal("list"),
  results: z.array(
    z.strictObject({
      index: z.number(),
      relevance_score: score,
      document: z.unknown().optional(),
    }),
  ),
  usage: z.strictObject({ prompt_tokens: z.number(), total_tokens: z.number() }),
});
const RANKS = z.array(z.strictObject({ index: z.number(), score, text: z.unknown().optional() }));

const NATIVE = z.array(z.strictObject({ index: z.number(), embedding: z.array(vector) }));
const TEI = z.array(vector);

/** The error of a response, which must be exactly the one envelope. */
export async function errorOf(response: Response) {
  expectJson(response);
  return ENVELOPE.parse(await response.json()).error;
}

/** The answer of /v1/embeddings with floats, components as f32. */
export async function embeddingsOf(response: Response) {
  expectJson(response);
  return EMBEDDINGS.parse(await response.json());
}

/** The answer of a rerank route to `documents`, scores as f32. */
export async function rankedOf(response: Response) {
  expectJson(response);
  return RANKED.parse(await response.json());
}

/** The answer of a rerank route to `texts`, scores as f32. */
export async function ranksOf(response: Response) {
  expectJson(response);
  return RANKS.parse(await response.json());
}

/** The vectors of a float answer of any single-vector embeddings route. */
export async function vectorsOf(path: string, response: Response): Promise<number[][]> {
  if (path === "/embed") return TEI.parse(await response.json());
  if (path === "/v1/embeddings") {
    return (await embeddingsOf(response)).data.map(({ embedding }) => embedding);
  }
  return NATIVE.parse(await response.json()).map(({ embedding }) => embedding.flat());
}

function expectJson(response: Response): void {
  const type = response.headers.get("content-type");
  if (type !== "application/json") throw new Error(`content-type is ${type}`);
}
