import { describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import { copyOfFixture, editJson, fixture } from "../../test/fixtures/fixtures.ts";
import { editTensors } from "../../test/fixtures/tensors.ts";
import { UNNORMALIZED } from "../pipeline/normalize.ts";
import type { EmbeddingModel } from "../pipeline/embedder.ts";
import { UnusableText } from "../pipeline/unusable-text.ts";
import { loadEmbeddingModel, type EmbedderOptions } from "./load-embedder.ts";

const device = mx.openDevice("cpu");

function load(name: string, options: Partial<EmbedderOptions> = {}): EmbeddingModel {
  return loadEmbeddingModel({ directory: fixture(name), device, ...options });
}

function rawVector(model: EmbeddingModel, text: string): Float32Array<ArrayBuffer> {
  return model.start([model.tokenize({ text }, {})]).read();
}

interface StoredTokenizer {
  post_processor: unknown;
  model: { vocab: Record<string, number> };
}

/** A copy of a fixture with another tokenizer.json. */
function withTokenizer(name: string, change: (file: StoredTokenizer) => void): string {
  const directory = copyOfFixture(name);
  editJson(join(directory, "tokenizer.json"), change);
  return directory;
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
    expect(model.facts.maxLength).toBe(wanted);
    const row = model.tokenize({ text: words }, {});
    expect(row.ids).toHaveLength(wanted);
    expect(row.truncated).toBe(true);
    expect(rawVector(model, words)).toHaveLength(model.dim);
  });

  test("is lowered by the flag, never raised", () => {
    expect(load("bert-mean", { maxLength: 10 }).facts.maxLength).toBe(10);
    expect(load("bert-mean", { maxLength: 1000 }).facts.maxLength).toBe(96);
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
      `has the token id ${id}, which is outside of the vocabulary of 1000`,
    );
  });

  test("none at all is refused", () => {
    expect(() => model.tokenize({ ids: new Int32Array() }, {})).toThrow(
      new UnusableText("has no tokens"),
    );
  });
});

describe("a text that the network cannot take is told apart from a failure", () => {
  test("no tokens at all", () => {
    const model = loadEmbeddingModel({
      directory: withTokenizer("bert-mean", (file) => (file.post_processor = null)),
      device,
    });
    for (const text of [" ", "\u200b"]) {
      expect(() => model.tokenize({ text }, {})).toThrow(new UnusableText("has no tokens"));
    }
  });

  test("a token that only the tokenizer has", () => {
    const directory = withTokenizer("bert-mean", ({ model }) => (model.vocab["zzzz"] = 5000));
    const model = loadEmbeddingModel({ directory, device });
    expect(() => model.tokenize({ text: "a zzzz" }, {})).toThrow(
      new UnusableText("has the token id 5000, which is outside of the vocabulary of 1000"),
    );
    expect(model.tokenize({ text: "a" }, {}).ids).toHaveLength(3);
  });
});

describe("a template of the tokenizer that the network has no rows for stops the load", () => {
  const template = (tokenId: number, typeId: number) =>
    withTokenizer("bert-mean", (file) => {
      file.post_processor = {
        type: "TemplateProcessing",
        single: [
          { SpecialToken: { id: "[CLS]", type_id: 0 } },
          { Sequence: { id: "A", type_id: typeId } },
        ],
        pair: [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }],
        special_tokens: { "[CLS]": { id: "[CLS]", ids: [tokenId], tokens: ["[CLS]"] } },
      };
    });
  const load = (tokenId: number, typeId: number) => () =>
    loadEmbeddingModel({ directory: template(tokenId, typeId), device });

  test("but what it has rows for is used", () => {
    expect(load(999, 1)().tokenize({ text: "a" }, {}).typeIds).toEqual(Int32Array.of(0, 1));
  });

  test("token types", () => {
    expect(load(2, 2)).toThrow(/post_processor gives tokens the type 2, .* type_vocab_size of 2;/);
    for (const typeId of [-1, -100_000, 2 ** 32]) {
      expect(load(2, typeId)).toThrow(/post_processor: single\.1/);
    }
  });

  test("tokens", () => {
    expect(load(1000, 0)).toThrow(/post_processor puts the token 1000 .* vocab_size of 1000;/);
    expect(load(-1, 0)).toThrow(/post_processor: special_tokens\.\[CLS\]/);
    expect(load(2 ** 32, 0)).toThrow(/post_processor: special_tokens\.\[CLS\]/);
  });
});

describe("do_lower_case", () => {
  const lowerCasing = (name: string) => {
    const directory = copyOfFixture(name);
    editJson<object>(join(directory, "sentence_bert_config.json"), (config) =>
      Object.assign(config, { do_lower_case: true }),
    );
    return loadEmbeddingModel({ directory, device });
  };

  // The starts of the vectors that sentence-transformers 6.2.0 (transformers 5.24.0, torch CPU) gives for copies of
  // these fixtures, whose tokenizers are cased, with "do_lower_case": true and nothing else changed.
  test.each([
    [
      "bert-max",
      "Hello World IN CAPS",
      [2, 738, 702, 560, 568, 449, 684, 670, 3],
      [0.5381405, 0.9101583, 0.1236896, 0.7992086, 0.4174525, 0.9715724, 1.582288, 3.314828],
    ],
    [
      "bert-max",
      "İstanbul [MASK] <mask> A",
      [2, 1, 4, 29, 675, 314, 343, 31, 60, 3],
      [0.7667677, 0.6060303, 1.982137, 0.4062161, 0.3615448, 0.9818725, 1.332323, 2.674389],
    ],
    [
      "roberta-mean",
      "Hello World IN CAPS",
      [0, 261, 404, 82, 416, 421, 291, 274, 68, 532, 2],
      [0.0428531, 0.0857692, 0.1116757, 0.1191264, 0.0990658, 0.07456, -0.0355171, 0.1174168],
    ],
    [
      "roberta-mean",
      "ΟΔΟΣ Übung",
      [0, 142, 127, 142, 116, 142, 127, 143, 229, 607, 69, 88, 590, 2],
      [0.1468841, 0.0946252, 0.2487662, -0.0898389, 0.1145469, 0.0644568, -0.2514143, -0.0548339],
    ],
  ])("lower-cases for the cased tokenizer of %s: %s", (name, text, ids, start) => {
    const model = lowerCasing(name);
    expect([...model.tokenize({ text }, {}).ids]).toEqual(ids);
    const vector = model.finish(rawVector(model, text), {});
    start.forEach((component, i) => expect(vector[i]).toBeCloseTo(component, 4));
    expect([...load(name).tokenize({ text }, {}).ids]).not.toEqual(ids);
  });

  test("changes nothing where the tokenizer lower-cases itself", () => {
    const text = "Hello World";
    expect(rawVector(lowerCasing("bert-mean"), text)).toEqual(rawVector(load("bert-mean"), text));
  });
});

test("config, tokenizer and weights are read from the folder of the Transformer module", () => {
  const directory = copyOfFixture("bert-mean");
  const folder = join(directory, "0_Transformer");
  mkdirSync(folder);
  for (const file of [
    "config.json",
    "model.safetensors",
    "sentence_bert_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
  ]) {
    renameSync(join(directory, file), join(folder, file));
  }
  editJson<{ path: string }[]>(join(directory, "modules.json"), (modules) => {
    modules[0]!.path = "0_Transformer";
  });
  const model = loadEmbeddingModel({ directory, device });
  expect(model.facts.maxLength).toBe(96);
  expect(rawVector(model, "hello")).toEqual(rawVector(load("bert-mean"), "hello"));
  rmSync(folder, { recursive: true });
  cpSync(fixture("bert-mean/config.json"), join(directory, "config.json"));
  expect(() => loadEmbeddingModel({ directory, device })).toThrow(
    "0_Transformer/config.json is missing",
  );
});

test("a Dense module of integers is refused by name", () => {
  const directory = copyOfFixture("bert-cls-dense");
  editTensors(join(directory, "2_Dense"), (tensor) => mx.astype(tensor, "uint32"));
  expect(() => loadEmbeddingModel({ directory, device })).toThrow(
    /"linear\.weight" in .*2_Dense.* is of the type U32/,
  );
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
    /^mlxcel-bert-mean-\w+ computed a vector that contains NaN; download the model again, or use another checkpoint$/,
  );
});

test("vectors that nobody reads are freed", () => {
  const model = load("bert-mean");
  const rows = [model.tokenize({ text: "hello" }, {})];
  // A batch may still be letting go of what it computed with when its result has been read: the least of some counts.
  const settledBytes = () =>
    Math.min(
      ...Array.from({ length: 5 }, () => {
        model.start(rows).read();
        return mx.activeBytes();
      }),
    );
  const before = settledBytes();
  for (let i = 0; i < 20; i++) model.start(rows).drop();
  expect(settledBytes()).toBe(before);
});
