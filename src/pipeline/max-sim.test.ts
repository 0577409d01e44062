import { expect, test } from "bun:test";
import { maxSim } from "./max-sim.ts";

const query = Float32Array.of(1, 0, 0, 2, -1, -1);

test("each vector of the query counts with its best match", () => {
  const document = Float32Array.of(0.5, 0, 0, 0.25, -1, 1);
  // the best matches: 0.5, 2, 0
  expect(maxSim(query, document, 2)).toEqual({ sum: 2.5, mean: 2.5 / 3 });
});

test("a best match may point away", () => {
  expect(maxSim(Float32Array.of(1, 0), Float32Array.of(-1, 0, -3, 0), 2).sum).toBe(-1);
});

test("the order of a document's vectors does not matter", () => {
  const forth = maxSim(query, Float32Array.of(1, 2, 3, 4), 2);
  expect(maxSim(query, Float32Array.of(3, 4, 1, 2), 2)).toEqual(forth);
});

test("a document without vectors scores as in sentence-transformers, a query without them 0", () => {
  const none = new Float32Array();
  expect(maxSim(query, none, 2)).toEqual({ sum: -1e9, mean: -1e9 / 3 });
  expect(maxSim(none, query, 2)).toEqual({ sum: 0, mean: 0 });
  expect(maxSim(none, none, 2)).toEqual({ sum: -1e9, mean: -1e9 });
});
