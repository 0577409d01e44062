/** Reference numbers of the fixture checkpoints, and how close to them ours must be. */
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { EmbeddingModel, EmbedRow } from "../../src/pipeline/embedder.ts";
import { fixture } from "../fixtures/fixtures.ts";

const vector = z.array(z.number());

const caseSchema = z.object({
  name: z.string(),
  input: z.union([z.string(), z.array(z.int())]),
  prompt: z.object({ name: z.string(), text: z.string() }).optional(),
  token_ids: z.array(z.int()),
  prompt_tokens: z.int(),
  /** After all modules. */
  embedding: vector,
  /** Before the Normalize module; absent where there is none. */
  unnormalized: vector.optional(),
  /** Last hidden state of each token. */
  token_rows: z.array(vector).optional(),
});

const referenceSchema = z.object({
  dim: z.int(),
  max_length: z.int(),
  pooling: z.string(),
  normalized: z.boolean(),
  tolerance: z.number(),
  cases: z.array(caseSchema).min(1),
});

type ReferenceCase = z.output<typeof caseSchema>;
type Reference = z.output<typeof referenceSchema>;

export function reference(fixtureName: string): Reference {
  const text = readFileSync(join(fixture(fixtureName), "expected.json"), "utf8");
  return referenceSchema.parse(JSON.parse(text));
}

/** What f32 arithmetic in another order may change, relative to the largest component. */
const F32_TOLERANCE = 1e-5;

export function largestDifference(actual: ArrayLike<number>, wanted: ArrayLike<number>): number {
  expect(actual.length).toBe(wanted.length);
  let largest = 0;
  for (let i = 0; i < wanted.length; i++) {
    // Math.max: a NaN anywhere makes the result NaN, which is within no tolerance.
    largest = Math.max(largest, Math.abs(actual[i]! - wanted[i]!));
  }
  return largest;
}

/** Within `tolerance` (or 1e-5 if that is stricter) times max(1, largest wanted component). */
export function expectClose(
  actual: ArrayLike<number>,
  wanted: ArrayLike<number>,
  what: string,
  tolerance = F32_TOLERANCE,
): void {
  const scale = Array.from(wanted).reduce((max, value) => Math.max(max, Math.abs(value)), 1);
  const allowed = Math.min(tolerance, F32_TOLERANCE) * scale;
  expect(largestDifference(actual, wanted), what).toBeLessThanOrEqual(allowed);
}

export function rowOf(model: EmbeddingModel, { input, prompt }: ReferenceCase) {
  if (typeof input !== "string") return model.tokenize({ ids: Int32Array.from(input) }, {});
  if (prompt === undefined || model.promptNames.includes(prompt.name)) {
    return model.tokenize({ text: input }, { promptName: prompt?.name });
  }
  // a GGUF file has no prompts: it is up to the user to put them in front
  return model.tokenize({ text: prompt.text + input }, {});
}

/** Vectors before normalisation, one per row, computed in one batch. */
export function rawVectors(model: EmbeddingModel, rows: readonly EmbedRow[]): Float32Array[] {
  const raw = model.start(rows).read();
  return rows.map((_, i) => raw.subarray(i * model.dim, (i + 1) * model.dim));
}

/** The same order on every run (mulberry32). */
export function shuffled<T>(items: readonly T[], seed: number): T[] {
  const result = [...items];
  let state = seed;
  for (let last = result.length - 1; last > 0; last--) {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    const random = ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
    const other = Math.floor(random * (last + 1));
    [result[last], result[other]] = [result[other]!, result[last]!];
  }
  return result;
}
