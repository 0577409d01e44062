/** Three sentences whose similarities under all-MiniLM-L6-v2 sentence-transformers publishes. */
import { expect } from "bun:test";
import { storeFolder } from "../../vendor/demo-model.ts";

export const sentences = [
  "The weather is lovely today.",
  "It's so sunny outside!",
  "He drove to the stadium.",
] as const;

/** Flags that serve the demo model from the store that the set-up fills. */
export const demoModelFlags = ["--models-dir", storeFolder()];

/** Insists on the published similarities, given with four decimals. */
export function expectPublishedSimilarities(vectors: readonly (readonly number[])[]): void {
  const [weather = [], sunny = [], stadium = []] = vectors;
  expect(vectors.map((vector) => vector.length)).toEqual([384, 384, 384]);
  expect(cosine(weather, sunny)).toBeCloseTo(0.666, 4);
  expect(cosine(weather, stadium)).toBeCloseTo(0.1046, 4);
  expect(cosine(sunny, stadium)).toBeCloseTo(0.1411, 4);
}

function cosine(a: readonly number[], b: readonly number[]): number {
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, i) => sum + value * (b[i] ?? Number.NaN), 0);
}
