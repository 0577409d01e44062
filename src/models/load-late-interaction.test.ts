/** What the settings of checkpoints with a vector per token do, and which are refused. */
import { describe, expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { CheckpointCopy } from "../../test/checkpoints.ts";
import {
  asMultiVectorEncoder,
  asStanfordColbert,
  encoderSettings,
  type EncoderSettings,
} from "../../test/multi-vector-layouts.ts";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { kindOf } from "../checkpoint/kind.ts";
import { loadEmbeddingModel, type EmbedderOptions } from "./load-embedder.ts";

const device = mx.openDevice("cpu");

const NAME = "colbert-bert";
const CONFIG = "config_sentence_transformers.json";
const [CLS, SEP, MASK, Q] = [2, 3, 4, 1000];

function load({ directory }: CheckpointCopy, options: Partial<EmbedderOptions> = {}) {
  return loadEmbeddingModel({ directory, device, ...options });
}

function pylate(settings: Record<string, unknown> = {}): CheckpointCopy {
  return new CheckpointCopy(NAME).set(CONFIG, settings);
}

function encoder(changes: Partial<EncoderSettings> = {}): CheckpointCopy {
  return asMultiVectorEncoder(NAME, { ...encoderSettings(NAME), ...changes });
}

function expectRefused(copy: CheckpointCopy, message: RegExp): void {
  expect(() => load(copy)).toThrow(CheckpointError);
  expect(() => load(copy)).toThrow(message);
}

const query = { promptName: "query" };
const document = { promptName: "document" };
const words = "vector ".repeat(300);

describe("PyLate's settings", () => {
  test("absent ones are PyLate's defaults", () => {
    const copy = pylate({ query_prefix: "[Q]", document_prefix: "[D]" });
    for (const key of ["query_length", "document_length", "do_query_expansion", "skiplist_words"]) {
      copy.set(CONFIG, { [key]: undefined });
    }
    const model = load(copy.positions(256));
    expect(model.facts.maxLength).toBe(180);
    expect(model.tokenize({ text: "egg" }, query).ids).toHaveLength(32);
    const { ids, outputs } = model.tokenize({ text: "vector!?" }, document);
    expect(outputs).toBe(ids.length - 2);
  });

  test("its older checkpoints, which name no type of model, are known by the other settings", () => {
    for (const changes of [{}, { query_prefix: undefined, document_prefix: undefined }]) {
      const copy = pylate({ model_type: undefined, ...changes });
      const { lateInteraction } = readCheckpoint(copy.directory);
      expect(lateInteraction?.document.marker).toBe("query_prefix" in changes ? "[D] " : "[D]");
    }
    expect(
      readCheckpoint(new CheckpointCopy("bert-mean").directory).lateInteraction,
    ).toBeUndefined();
  });

  test("without expansion queries stay short", () => {
    const model = load(pylate({ do_query_expansion: false, attend_to_expansion_tokens: true }));
    const row = model.tokenize({ text: "vector" }, query);
    expect([...row.ids]).toEqual([CLS, Q, row.ids[2]!, SEP]);
    expect(row.attended).toBeUndefined();
    expect(model.tokenize({ text: words }, query)).toMatchObject({ truncated: true, tokens: 24 });
  });

  test("an empty prefix adds no token, and its place is free for text", () => {
    const model = load(pylate({ query_prefix: "" }));
    expect([...model.tokenize({ text: "" }, query).ids.subarray(0, 3)]).toEqual([CLS, SEP, MASK]);
    expect(model.tokenize({ text: words }, query).tokens).toBe(24);
  });

  test("their lengths count instead of those that training left in other files", () => {
    const copy = pylate({ document_length: 60 });
    const model = load(copy.set("sentence_bert_config.json", { max_seq_length: 23 }));
    expect(model.facts.maxLength).toBe(60);
    expect(model.tokenize({ text: words }, document).ids).toHaveLength(60);
  });

  test("the user's limit lowers both sides", () => {
    const model = load(pylate(), { maxLength: 10 });
    expect(model.tokenize({ text: words }, document).ids).toHaveLength(10);
    expect(model.tokenize({ text: "vector" }, query)).toMatchObject({ attended: 4, limit: 10 });
    expect(model.tokenize({ text: "vector" }, query).ids).toHaveLength(10);
    expect(() => load(pylate(), { maxLength: 3 })).toThrow(/leaves no room/);
  });

  test("a prompt goes behind the marker", () => {
    const model = load(pylate({ prompts: { query: "vector " } }));
    const prompted = model.tokenize({ text: "search" }, query);
    expect(prompted.ids).toEqual(load(pylate()).tokenize({ text: "vector search" }, query).ids);
  });

  test.each([
    [{ query_prefix: 7 }, /query_prefix: /],
    [{ query_length: 0 }, /query_length: /],
    [{ document_length: "96" }, /document_length: /],
    [{ do_query_expansion: "yes" }, /do_query_expansion: /],
    [{ attend_to_expansion_tokens: 1 }, /attend_to_expansion_tokens: /],
    [{ skiplist_words: "," }, /skiplist_words: /],
    [{ document_prefix: "[Doc]" }, /document_prefix: "\[Doc\]" is not a token/],
    [{ query_length: 3 }, /limit of 3 leaves no room/],
  ])("%j is refused by name", (settings, message) => expectRefused(pylate(settings), message));

  test("a tokenizer without a mask token fills up by its end token, or is refused", () => {
    const copy = pylate();
    const named = (names: Record<string, unknown>) =>
      copy.set("tokenizer_config.json", names).set("special_tokens_map.json", names);
    const ended = load(named({ mask_token: undefined, eos_token: { content: "[SEP]" } }));
    expect(ended.tokenize({ text: "egg" }, query).ids.at(-1)).toBe(SEP);
    expectRefused(named({ eos_token: undefined }), /query expansion: .* no mask token/);
  });

  test("a marker that the network has no row for is refused", () => {
    const copy = pylate()
      .set("config.json", { vocab_size: 1000 })
      .tensors((table) => {
        const name = "embeddings.word_embeddings.weight";
        const { shape, bytes, dtype } = table.get(name)!;
        const kept = 1000 * shape[1]!;
        table.set(name, { dtype, shape: [1000, shape[1]!], bytes: bytes.subarray(0, 4 * kept) });
      });
    expectRefused(copy, /the token 1000 that is put into each query .* vocab_size of 1000/);
  });
});

describe("a MultiVectorEncoder's settings", () => {
  const expansion = { strategy: "fixed", length: 12 };

  test.each([
    [{ query_expansion: { ...expansion, strategy: "max" } }, /query_expansion\.strategy: /],
    [{ query_expansion: { strategy: "fixed" } }, /query_expansion\.length: /],
    [{ query_expansion: { ...expansion, side: "left" } }, /"side" is not a supported setting/],
    [{ query_expansion: { ...expansion, token: "[FILL]" } }, /"\[FILL\]" is not a token/],
    [{ query_length: -1, query_expansion: null }, /query_length: /],
    [{ skiplist_tasks: ["passage"] }, /MultiVectorMask\/config\.json: skiplist_tasks/],
  ])("%j is refused by name", (settings, message) => expectRefused(encoder(settings), message));

  test("a mask that keeps some tokens only is refused, and so is one of two masks", () => {
    const keeping = encoder().set("2_MultiVectorMask/config.json", { keep_only_token_ids: [7] });
    expectRefused(keeping, /keep_only_token_ids: /);
    const mask = { type: "MultiVectorMask", path: "2_MultiVectorMask" };
    const modules = [{ type: "Transformer", path: "" }, mask, mask];
    expectRefused(encoder().write("modules.json", modules), /one MultiVectorMask/);
  });

  test("modules that work on one vector per text are refused, and so is expansion without a mask", () => {
    const sentence = { module_input_name: "sentence_embedding" };
    expectRefused(encoder().set("3_Normalize/config.json", sentence), /module_input_name: /);
    expectRefused(encoder().set("1_Dense/config.json", sentence), /module_input_name: /);
    const modules = [{ type: "Transformer", path: "" }];
    expectRefused(encoder().write("modules.json", modules), /"query_expansion" needs a Multi/);
    const pooled = [...modules, { type: "Pooling", path: "1_Pooling" }];
    const settings = { query_expansion: null };
    expectRefused(
      encoder(settings).write("modules.json", pooled),
      /the chain Transformer, Pooling/,
    );
  });

  test("without Normalize vectors stay as they are", () => {
    const modules = [
      { type: "Transformer", path: "" },
      { type: "Dense", path: "1_Dense" },
    ];
    const model = load(encoder({ query_expansion: null }).write("modules.json", modules));
    expect(model.normalization).toBe("none");
  });

  test("queries that are filled up beyond an attention window are refused", () => {
    const settings = { dense: false, query_expansion: { ...expansion, length: 40 } };
    const copy = asMultiVectorEncoder("modernbert-mean", settings);
    expectRefused(copy, /filled up to 40 tokens/);
    const attended = { dense: false, query_expansion: { ...expansion, length: 40, attend: true } };
    expect(load(asMultiVectorEncoder("modernbert-mean", attended)).multiVector).toBe(true);
  });
});

describe("Stanford's settings", () => {
  test("another similarity is refused, and so is a projection of another width", () => {
    const copy = () => asStanfordColbert(NAME);
    expectRefused(copy().set("artifact.metadata", { similarity: "l2" }), /similarity: /);
    expectRefused(copy().set("artifact.metadata", { dim: 16 }), /linear\.weight.*\[16, 36\]/);
    expectRefused(copy().remove("artifact.metadata"), /artifact\.metadata is missing/);
  });
});

test("all layouts are embedders, whatever their architecture is called", () => {
  for (const copy of [pylate(), encoder(), asStanfordColbert(NAME)]) {
    copy.set("config.json", { model_type: "someones_bert" });
    expect(kindOf(readCheckpoint(copy.directory))).toBe("embedding");
  }
});

test("a pooling flag, and a checkpoint without modules.json, are refused", () => {
  expect(() => load(pylate(), { pooling: "mean" })).toThrow(/--pooling does not apply/);
  expectRefused(pylate().remove("modules.json"), /modules\.json is missing/);
});

test("settings of queries and documents are refused where a text has one vector", () => {
  const copy = new CheckpointCopy("bert-mean");
  copy.set("sentence_bert_config.json", { query_length: 8 });
  expectRefused(copy, /query_length: /);
});
