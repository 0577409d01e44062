/**
 * What every family keeps: a result depends on its row alone, not on the neighbours, the place in the batch, the length
 * of the longest row, or the side on which the tokenizer would pad.
 */
import { describe, expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { loadEmbeddingModel } from "../../src/models/load-embedder.ts";
import { loadReranker } from "../../src/models/load-reranker.ts";
import { families } from "../../src/models/registry.ts";
import type { EmbeddingModel, EmbedRow } from "../../src/pipeline/embedder.ts";
import type { PairRow, Reranker } from "../../src/pipeline/reranker.ts";
import { CheckpointCopy } from "../checkpoints.ts";
import { editTensors } from "../fixtures/tensors.ts";
import { expectClose, rawVectors, shuffled } from "./reference.ts";
import { stretched } from "./stretched.ts";

const device = mx.openDevice("cpu");

const LONGEST = 512;
/** Around the widths of tiles. mlx's own operations know no tiles, and take minutes for all of these. */
const LENGTHS = mx.kernels() ? [31, 32, 33, 127, 128, 129, 511, LONGEST] : [33, 129];

interface Entry {
  /** Fixtures that between them use every mask and head of the family. */
  readonly embedders: readonly string[];
  /** Keys of config.json that make an embedder of this family out of another fixture. */
  readonly config?: Record<string, unknown>;
  /** For families with a head for them. */
  readonly rerankers?: readonly string[];
}

/** By model_type: a family that is added needs an entry. */
const ENTRIES: Readonly<Record<string, Entry>> = {
  bert: { embedders: ["bert-mean", "bert-lasttoken"], rerankers: ["rerank-bert"] },
  roberta: { embedders: ["roberta-mean"], rerankers: ["rerank-roberta"] },
  "xlm-roberta": { embedders: ["xlm-roberta-cls"], rerankers: ["rerank-xlm-roberta"] },
  distilbert: { embedders: ["distilbert-mean"] },
  mpnet: { embedders: ["mpnet-mean"] },
  "deberta-v2": {
    embedders: ["rerank-deberta-v2"],
    config: { architectures: ["DebertaV2Model"] },
    rerankers: ["rerank-deberta-v2"],
  },
  nomic_bert: { embedders: ["nomic-bert"] },
  gte: { embedders: ["gte-hf"], rerankers: ["rerank-gte-new"] },
  new: { embedders: ["gte-new"], rerankers: ["rerank-gte-new"] },
  jina_embeddings_v3: { embedders: ["jina-v3-base"] },
  eurobert: { embedders: ["eurobert-mean"] },
  modernbert: {
    embedders: ["modernbert-mean", "modernbert-cls"],
    rerankers: ["rerank-modernbert-cls", "rerank-modernbert-mean"],
  },
  t5: { embedders: ["t5-encoder", "t5-encoder-gated"] },
  qwen2: { embedders: ["qwen2-embed", "qwen2-embed-bidirectional"] },
  qwen3: { embedders: ["qwen3-embed"], rerankers: ["rerank-qwen3-seqcls", "rerank-qwen3"] },
  llama: {
    embedders: ["llama-bidirec"],
    config: { architectures: ["LlamaModel"] },
  },
  llama_bidirec: { embedders: ["llama-bidirec"] },
  mistral: { embedders: ["mistral-embed"] },
  ministral3: { embedders: ["ministral3-embed"] },
  gemma3_text: { embedders: ["gemma3-embed"] },
  embedding_gemma2: { embedders: ["embedding-gemma2-text"] },
};

test("every family is tested here, its rerankers too", () => {
  expect(Object.keys(ENTRIES).sort()).toEqual(families.map((family) => family.modelType).sort());
  for (const { modelType, loadClassifier } of families) {
    const { embedders, rerankers = [] } = ENTRIES[modelType]!;
    expect(embedders.length, modelType).toBeGreaterThan(0);
    expect(rerankers.length > 0, modelType).toBe(loadClassifier !== undefined);
  }
});

function longCopy(name: string, config: Record<string, unknown>): CheckpointCopy {
  return stretched(new CheckpointCopy(name).set("config.json", config), LONGEST);
}

/** Each row of a batch must give what it gives alone, in whatever order they come. */
function expectSameAsAlone<Row>(
  rows: readonly Row[],
  run: (batch: readonly Row[]) => readonly ArrayLike<number>[],
  what: string,
): void {
  const alone = rows.map((row) => run([row])[0]!);
  for (const order of [rows.keys(), rows.keys().toArray().reverse(), undefined]) {
    const indices = order ? [...order] : shuffled([...rows.keys()], rows.length);
    const results = run(indices.map((index) => rows[index]!));
    results.forEach((result, i) => expectClose(result, alone[indices[i]!]!, `${what}: ${indices}`));
  }
}

const TEXTS = [
  "The old fox",
  "  Zürich,\tn°7\n\n",
  "数え切れない星",
  "def f(x): return x ** 2  # 12345",
  "a",
];

const rowOfIds = (model: EmbeddingModel, length: number): EmbedRow =>
  model.tokenize(
    {
      ids: Int32Array.from(
        { length },
        (_, i) => (7 + 31 * i + 13 * length) % model.facts.vocabSize,
      ),
    },
    {},
  );

/** Rows up to this length, the last of them in blocks that the longest one pads. */
const lengthsUpTo = (longest: number) => [1, 2, 17, longest - (longest >> 3), longest - 1, longest];

function embedderTests(modelType: string, name: string, config: Entry["config"] = {}): void {
  const copyOf = () => longCopy(name, { model_type: modelType, ...config });
  const { directory } = copyOf();
  const model = loadEmbeddingModel({ directory, device });

  test("the family is that of the entry, and takes the longest rows", () => {
    expect(model).toMatchObject({ facts: { family: modelType, maxLength: LONGEST } });
  });

  test.each(LENGTHS)("up to %d tokens: alone, in a batch, at another place", (longest) => {
    const rows = lengthsUpTo(longest).map((length) => rowOfIds(model, length));
    expectSameAsAlone(rows, (batch) => rawVectors(model, batch), `${longest} tokens`);
  });

  test("a text is its token ids, beside whatever text", () => {
    const texts = TEXTS.map((text) => model.tokenize({ text }, {}));
    const ids = texts.map((row) => model.tokenize({ ids: row.ids }, {}));
    const wanted = rawVectors(model, texts);
    rawVectors(model, [...ids, rowOfIds(model, LENGTHS.at(-1)!)].reverse())
      .reverse()
      .slice(0, ids.length)
      .forEach((vector, i) => expectClose(vector, wanted[i]!, TEXTS[i]!));
    expectSameAsAlone(texts, (batch) => rawVectors(model, batch), "texts");
  });

  test("the padding side of the tokenizer's files changes nothing", () => {
    const vectors = (["left", "right"] as const).map((padding_side) => {
      const copy = copyOf().set("tokenizer_config.json", { padding_side });
      const padded = loadEmbeddingModel({ directory: copy.directory, device });
      return rawVectors(
        padded,
        TEXTS.map((text) => padded.tokenize({ text }, {})),
      );
    });
    expect(vectors[0]).toEqual(vectors[1]!);
  });

  test.each(["float16", "bfloat16"] as const)("%s: rows that others pad are finite", (dtype) => {
    const copy = copyOf();
    editTensors(copy.directory, (tensor) => mx.astype(tensor, dtype));
    // The device only decides what the weights are converted to: this one leaves them as they are.
    const half = loadEmbeddingModel({ directory: copy.directory, device: "gpu" });
    // At 129 the padding of a block is wider than the windows of the fixtures.
    for (const longest of [33, 129]) {
      const rows = lengthsUpTo(longest).map((length) => rowOfIds(half, length));
      const together = rawVectors(half, rows);
      expect(together.every((vector) => vector.every(Number.isFinite))).toBe(true);
    }
  });
}

function rerankerTests(modelType: string, name: string): void {
  const copyOf = () => longCopy(name, { model_type: modelType });
  const QUERY = "an old fox";
  const loaded = (copy: CheckpointCopy, maxLength = LONGEST): Reranker =>
    loadReranker({ directory: copy.directory, device, maxLength });
  const logitsOf = (model: Reranker) => (rows: readonly PairRow[]) =>
    Array.from(model.start(rows).read(), (logit) => [logit]);
  const longText = (words: string) => words.repeat(LENGTHS.at(-1)!);
  const DOCUMENTS = [...TEXTS, "b", longText("fox "), "the stars ".repeat(20)];

  const copy = copyOf();
  const shortest = loaded(copy).prepare(QUERY).pair("a").tokens;

  test("the family is that of the entry", () => {
    expect(loaded(copy)).toMatchObject({ facts: { family: modelType, maxLength: LONGEST } });
  });

  test.each(LENGTHS.filter((length) => length > shortest))(
    "pairs up to %d tokens: alone, in a batch, at another place",
    (longest) => {
      const model = loaded(copy, longest);
      const query = model.prepare(QUERY);
      const rows = DOCUMENTS.map((document) => query.pair(document));
      expect(Math.max(...rows.map(({ tokens }) => tokens))).toBe(longest);
      expectSameAsAlone(rows, logitsOf(model), `${longest} tokens`);
      query.release();
    },
  );

  test("the padding side of the tokenizer's files changes nothing", () => {
    const logits = (["left", "right"] as const).map((padding_side) => {
      const model = loaded(copyOf().set("tokenizer_config.json", { padding_side }));
      const query = model.prepare(QUERY);
      const values = logitsOf(model)(DOCUMENTS.map((document) => query.pair(document)));
      query.release();
      return values;
    });
    expect(logits[0]).toEqual(logits[1]!);
  });
}

for (const [modelType, { embedders, rerankers = [], config }] of Object.entries(ENTRIES)) {
  describe.each(embedders)(`${modelType}: %s`, (name) => embedderTests(modelType, name, config));
  describe.each(rerankers)(`${modelType}: %s`, (name) => rerankerTests(modelType, name));
}
