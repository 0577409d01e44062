import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { readYesNoParts } from "../models/load-yes-no-reranker.ts";
import type { Decoder } from "../nn/decoder.ts";
import type { PairRow } from "./reranker.ts";
import { YesNoReranker } from "./yes-no-reranker.ts";

const device = mx.openDevice("cpu");
const parts = readYesNoParts(readCheckpoint(fixture("rerank-qwen3")), { device });
const { prompt } = parts;

/** The decoder, which counts the tokens that run through it. */
class Counting implements Decoder {
  tokens = 0;
  readonly hiddenSize = parts.decoder.hiddenSize;
  readonly vocabSize = parts.decoder.vocabSize;
  readonly maxPositions = parts.decoder.maxPositions;

  forward(...[batch, past]: Parameters<Decoder["forward"]>) {
    this.tokens += batch.ids.length;
    return parts.decoder.forward(batch, past);
  }

  prefill(...[ids, past]: Parameters<Decoder["prefill"]>) {
    this.tokens += ids.length;
    return parts.decoder.prefill(ids, past);
  }
}

const documents = ["Six minutes.", "The weather was recorded twice a day.", "", "egg", "egg egg"];

function sumOf(rows: readonly PairRow[], tokensOf: (row: PairRow) => number): number {
  return rows.reduce((sum, row) => sum + tokensOf(row), 0);
}

test("what the pairs of a query begin with runs once for all of them, what all queries begin with once for all", () => {
  const decoder = new Counting();
  const model = new YesNoReranker({ ...parts, decoder });
  const query = "how long should an egg boil";
  const sharedTokens = prompt.shared(query).ids.length;

  const first = model.prepare(query);
  const rows = documents.map((document) => first.pair(document));
  expect(decoder.tokens).toBe(0);
  model.start(rows.slice(0, 3)).read();
  model.start(rows.slice(3)).read();
  const own = sumOf(rows, ({ ids }) => ids.length);
  expect(decoder.tokens).toBe(prompt.beginning.length + sharedTokens + own);
  const whole = sumOf(rows, ({ tokens }) => tokens);
  expect(whole).toBe(rows.length * (prompt.beginning.length + sharedTokens) + own);
  first.release();

  decoder.tokens = 0;
  const second = model.prepare(query);
  model.start(documents.map((document) => second.pair(document))).read();
  expect(decoder.tokens).toBe(sharedTokens + own);
  second.release();
});

test("a query of which no pair runs costs nothing", () => {
  const decoder = new Counting();
  const query = new YesNoReranker({ ...parts, decoder }).prepare("a query");
  query.pair("a document");
  query.release();
  expect(decoder.tokens).toBe(0);
});

test("pairs of different queries are refused in one batch, and pairs of a released query", () => {
  const model = new YesNoReranker(parts);
  const [one, other] = [model.prepare("same"), model.prepare("same")];
  const mixed = [one.pair("a"), other.pair("a")];
  expect(() => model.start(mixed)).toThrow(/must share/);
  expect(() => model.start([])).toThrow(/must share/);
  expect(() => model.start([{ ...mixed[0]!, prefix: {} }])).toThrow(/must share/);
  one.release();
  expect(() => model.start([mixed[0]!])).toThrow(/released/);
  expect(model.start([mixed[1]!]).read()).toHaveLength(1);
  other.release();
});

test("logits that are pending when their query is released are still right", () => {
  const model = new YesNoReranker(parts);
  const logits = (releaseFirst: boolean) => {
    const query = model.prepare("how long should an egg boil");
    const pending = model.start(documents.map((document) => query.pair(document)));
    if (releaseFirst) query.release();
    const values = pending.read();
    if (!releaseFirst) query.release();
    return values;
  };
  expect(logits(true)).toEqual(logits(false));
});

test("a logit that is not finite is an error that names the model", () => {
  const head = mx.fromFloat32(new Float32Array(2 * parts.decoder.hiddenSize).fill(Number.NaN), [
    2,
    parts.decoder.hiddenSize,
  ]);
  const model = new YesNoReranker({ ...parts, answerHead: head });
  const query = model.prepare("a query");
  const pending = model.start([query.pair("a document")]);
  expect(() => pending.read()).toThrow(/rerank-qwen3 computed a logit that is NaN/);
  query.release();
});

test("an over-long query gives every document the same finite logit", () => {
  const model = new YesNoReranker(parts);
  const query = model.prepare("word ".repeat(50_000));
  const rows = documents.map((document) => query.pair(document));
  expect(rows.every(({ tokens, truncated }) => truncated && tokens === model.facts.maxLength)).toBe(
    true,
  );
  const [first, ...others] = model.start(rows).read();
  expect(Number.isFinite(first)).toBe(true);
  for (const other of others) expect(other).toBeCloseTo(first!, 5);
  query.release();
});

test("requests leave no tensors behind", () => {
  const model = new YesNoReranker(parts);
  const request = () => {
    const query = model.prepare("a query");
    const rows = documents.map((document) => query.pair(document));
    model.start(rows.slice(0, 2)).drop();
    // What was dropped has been computed once this is.
    model.start(rows).read();
    query.release();
  };
  request();
  const before = mx.activeBytes();
  for (let i = 0; i < 30; i++) request();
  expect(mx.activeBytes()).toBe(before);
});
