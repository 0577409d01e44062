import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import { copyOfFixture, editJson, fixture } from "../../test/fixtures/fixtures.ts";
import { UNNORMALIZED } from "../pipeline/normalize.ts";
import type { EmbeddingModel } from "../pipeline/embedder.ts";
import { loadEmbeddingModel, type LoadOptions } from "./load.ts";

const device = mx.openDevice("cpu");

function load(name: string, options: Partial<LoadOptions> = {}): EmbeddingModel {
  return loadEmbeddingModel({ directory: fixture(name), device, ...options });
}

function rawVector(model: EmbeddingModel, text: string): Float32Array<ArrayBuffer> {
  return model.start([model.tokenize({ text }, {})]).read();
}

const length = (vector: Float32Array) => Math.hypot(...vector);

describe("the length limit", () => {
  const words = "word ".repeat(600);

  test.each([
    ["sentence_bert_config.json", { max_seq_length: 20 }, 20],
    ["tokenizer_config.json", { model_max_length: 30 }, 30],
    ["sentence_bert_config.json", { max_seq_length: 100_000 }, 128],
  ])("is the smallest that a file states: %s %j", (file, limit, wanted) => {
    const directory = copyOfFixture("bert-mean");
    editJson<object>(join(directory, file), (config) => Object.assign(config, limit));
    const model = loadEmbeddingModel({ directory, device });
    expect(model.maxLength).toBe(wanted);
    const row = model.tokenize({ text: words }, {});
    expect(row.ids).toHaveLength(wanted);
    expect(row.truncated).toBe(true);
    expect(rawVector(model, words)).toHaveLength(model.dim);
  });

  test("is lowered by the flag, never raised", () => {
    expect(load("bert-mean", { maxLength: 10 }).maxLength).toBe(10);
    expect(load("bert-mean", { maxLength: 1000 }).maxLength).toBe(96);
  });

  test("that leaves no room for text is refused by the flag's name", () => {
    expect(load("bert-mean", { maxLength: 3 }).tokenize({ text: words }, {}).ids).toHaveLength(3);
    for (const maxLength of [1, 2]) {
      expect(() => load("bert-mean", { maxLength })).toThrow(
        /--embedding-max-length of \d leaves no/,
      );
    }
  });

  test("cuts text before its closing special, and ids to the first n", () => {
    const model = load("bert-mean", { maxLength: 8 });
    const whole = load("bert-mean").tokenize({ text: words }, {}).ids;
    const cut = model.tokenize({ text: words }, {}).ids;
    expect([...cut]).toEqual([...whole.slice(0, 7), whole.at(-1)!]);
    const ids = Int32Array.from({ length: 20 }, (_, i) => i + 10);
    expect(model.tokenize({ ids }, {})).toMatchObject({ ids: ids.slice(0, 8), truncated: true });
    expect(model.tokenize({ ids: ids.slice(0, 8) }, {}).truncated).toBe(false);
  });
});

describe("token ids", () => {
  const model = load("bert-mean");

  test("are used verbatim: no specials, no prompt", () => {
    const prompted = load("bert-no-prompt-pooling");
    const row = prompted.tokenize({ ids: Int32Array.of(5, 6) }, { promptName: "query" });
    expect(row).toMatchObject({ ids: Int32Array.of(5, 6), promptTokens: 0, truncated: false });
  });

  test.each([-1, 1000, 2 ** 31 - 1])("%d outside of the vocabulary is refused", (id) => {
    expect(() => model.tokenize({ ids: Int32Array.of(5, id) }, {})).toThrow(
      `token id ${id} is outside of the vocabulary of 1000`,
    );
  });

  test("none at all is refused", () => {
    expect(() => model.tokenize({ ids: new Int32Array() }, {})).toThrow(RangeError);
  });
});

test("--pooling overrides the file, and the four modes differ", () => {
  const vectors = (["mean", "cls", "last", "max"] as const).map((pooling) => {
    const model = load("bert-mean", { pooling });
    expect(model.pooling).toBe(pooling === "last" ? "lasttoken" : pooling);
    return rawVector(model, "vector search").join();
  });
  expect(new Set(vectors).size).toBe(4);
  expect(vectors[0]).toBe(rawVector(load("bert-mean"), "vector search").join());
});

describe("the finished vector", () => {
  const model = load("bert-mean");
  const raw = rawVector(model, "hello");

  test("is normalised as the request says, else as the server says, else as the checkpoint says", () => {
    expect(length(model.finish(raw, {}))).toBeCloseTo(1, 6);
    expect(model.finish(raw, { normalize: UNNORMALIZED })).toEqual(raw);
    const server = load("bert-mean", { normalize: UNNORMALIZED });
    expect(server.normalization).toBe("none");
    expect(server.finish(raw, {})).toEqual(raw);
    expect(length(server.finish(raw, { normalize: 2 }))).toBeCloseTo(1, 6);
    expect(load("bert-mean", { normalize: 1 }).normalization).toBe("1");
    expect(load("bert-max").finish(raw, {})).toEqual(raw);
    expect(length(model.finish(raw, {}))).toBeCloseTo(1, 6);
  });

  test("is cut, then normalised again unless normalisation is off", () => {
    const cut = model.finish(raw, { dimensions: 8 });
    const whole = model.finish(raw, {});
    expect(cut).toHaveLength(8);
    expect(length(cut)).toBeCloseTo(1, 6);
    cut.forEach((component, i) =>
      expect(component).toBeCloseTo(whole[i]! / length(whole.slice(0, 8)), 6),
    );
    const prefix = model.finish(raw, { dimensions: 8, normalize: UNNORMALIZED });
    expect(prefix).toEqual(raw.slice(0, 8));
    expect(model.finish(raw, { dimensions: 1 })).toHaveLength(1);
    expect(model.finish(raw, { dimensions: 64 })).toEqual(whole);
  });
});

test("a vector that is not finite is an error that names the model, never a result", () => {
  const directory = copyOfFixture("bert-mean");
  const path = join(directory, "model.safetensors");
  const bias = "encoder.layer.1.output.LayerNorm.bias";
  mx.scope(() => {
    const { tensors } = mx.loadSafetensors(path);
    mx.evaluate(...tensors.values());
    const [first, ...others] = tensors.get(bias)!.toFloat32();
    expect(first).toBeFinite();
    tensors.set(bias, mx.fromFloat32(Float32Array.of(Number.NaN, ...others), [64]));
    mx.saveSafetensors(path, tensors, new Map([["format", "pt"]]));
  });
  const model = loadEmbeddingModel({ directory, device });
  const pending = model.start([model.tokenize({ text: "hello" }, {})]);
  expect(() => pending.read()).toThrow(
    /^mlxcel-bert-mean-\w+ computed a vector that contains NaN$/,
  );
});

test("vectors that nobody reads are freed", () => {
  const model = load("bert-mean");
  const rows = [model.tokenize({ text: "hello" }, {})];
  model.start(rows).read();
  const before = mx.activeBytes();
  for (let i = 0; i < 20; i++) model.start(rows).drop();
  model.start(rows).read();
  expect(mx.activeBytes()).toBe(before);
});
