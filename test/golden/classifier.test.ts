import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import { loadReranker } from "../../src/models/load-reranker.ts";
import type { Reranker } from "../../src/pipeline/reranker.ts";
import { UnusableText } from "../../src/pipeline/unusable-text.ts";
import { copyOfFixture, editJson, fixture } from "../fixtures/fixtures.ts";
import { editTensors } from "../fixtures/tensors.ts";
import { refusalOf } from "../refusal.ts";
import { describeCrossEncoders } from "./cross-encoder.ts";

const device = mx.openDevice("cpu");

const CROSS_ENCODERS = [
  "rerank-bert",
  "rerank-roberta",
  "rerank-xlm-roberta",
  "rerank-gte-new",
  "rerank-deberta-v2",
  "rerank-modernbert-cls",
  "rerank-modernbert-mean",
];

describeCrossEncoders(CROSS_ENCODERS);

const QUERY = "How many people live in Berlin?";
const DOCUMENTS = ["Berlin is nice.", "Berlin has 3.5 million inhabitants.", "Cats sleep."];

function logitsOf(model: Reranker, query = QUERY, documents = DOCUMENTS): number[] {
  const prepared = model.prepare(query);
  const logits = model.start(documents.map((document) => prepared.pair(document))).read();
  prepared.release();
  return [...logits];
}

function changed(name: string, change: (tensor: mx.Tensor, tensorName: string) => mx.Tensor) {
  const directory = copyOfFixture(name);
  editTensors(directory, change);
  return loadReranker({ directory, device });
}

const loadRefusal = (directory: string) => refusalOf(() => loadReranker({ directory, device }));

test("two labels are refused, with the name and what is needed", () => {
  const message = loadRefusal(fixture("classifier-bert-2-labels"));
  expect(message).toMatch(
    /classifier-bert-2-labels is a classifier of 2 labels.*"classifier.weight".*exactly 1/,
  );
});

test("an embedding model is refused as a reranker", () => {
  expect(loadRefusal(fixture("roberta-mean"))).toMatch(/roberta-mean is an embedding model/);
});

describe.each(CROSS_ENCODERS)("%s", (name) => {
  test.each([0, 8.6, -11])("with a head of zeros the logit is its bias %d", (bias) => {
    const model = changed(name, (tensor, tensorName) => {
      if (!/^classifier\.(out_proj\.)?(weight|bias)$/.test(tensorName)) return tensor;
      const value = tensorName.endsWith("bias") ? bias : 0;
      return mx.multiply(mx.ones(tensor.shape), mx.scalar(value));
    });
    expect(logitsOf(model)).toEqual(DOCUMENTS.map(() => Math.fround(bias)));
  });

  test("computed in half precision, logits stay close and one row apart from its neighbours", () => {
    const directory = copyOfFixture(name);
    editTensors(directory, (tensor) => mx.astype(tensor, "float16"));
    // The device only decides what the weights are converted to: this one leaves them in f16.
    const half = loadReranker({ directory, device: "gpu" });
    const exact = logitsOf(loadReranker({ directory, device }));
    const together = logitsOf(half);
    DOCUMENTS.forEach((document, i) => {
      const [alone] = logitsOf(half, QUERY, [document]);
      expect(Math.abs(together[i]! - alone!)).toBeLessThan(0.02);
      expect(Math.abs(together[i]! - exact[i]!)).toBeLessThan(0.05);
      // A logit that went through f16 would be one of its numbers.
      expect(mx.scope(() => mx.scalar(together[i]!, "float16").toFloat32()[0])).not.toBe(
        together[i]!,
      );
    });
  });

  test("huge queries and documents are cut, and change nothing for their neighbours", () => {
    const model = loadReranker({ directory: fixture(name), device });
    const words = Array.from({ length: 20_000 }, (_, i) => `word${i % 977}`).join(" ");
    const [short] = logitsOf(model, QUERY, ["short"]);
    const prepared = model.prepare(QUERY);
    const rows = ["short", words].map((document) => prepared.pair(document));
    expect(rows.map((row) => row.truncated)).toEqual([false, true]);
    expect(rows[1]!.ids).toHaveLength(model.facts.maxLength);
    const [beside, long] = model.start(rows).read();
    expect(beside).toBeCloseTo(short!, 4);
    expect(long).toBeFinite();
    for (const document of ["short", words]) {
      expect(model.prepare(words).pair(document).ids).toHaveLength(model.facts.maxLength);
    }
  });
});

test("the second row of BERT's type table belongs to the document", () => {
  const zeroed = changed("rerank-bert", (tensor, name) => {
    if (name !== "bert.embeddings.token_type_embeddings.weight") return tensor;
    const rows = mx.fromFloat32(Float32Array.of(1, 0), [2, 1]);
    return mx.multiply(tensor, rows);
  });
  const before = logitsOf(loadReranker({ directory: fixture("rerank-bert"), device }));
  logitsOf(zeroed).forEach((logit, i) =>
    expect(Math.abs(logit - before[i]!)).toBeGreaterThan(1e-3),
  );
});

describe("the declared activation", () => {
  const declaring = (declaration: object) => {
    const directory = copyOfFixture("rerank-bert");
    editJson<object>(join(directory, "config.json"), (config) =>
      Object.assign(config, declaration),
    );
    return directory;
  };

  test.each([
    { sentence_transformers: { activation_fn: "torch.nn.modules.activation.Sigmoid" } },
    { sentence_transformers: { activation_fn: "torch.nn.modules.linear.Identity", version: "5" } },
    { sbert_ce_default_activation_function: "torch.nn.modules.linear.Identity" },
    { sentence_transformers: {} },
  ])("%j changes no logit", (declaration) => {
    const plain = loadReranker({ directory: fixture("rerank-bert"), device });
    const model = loadReranker({ directory: declaring(declaration), device });
    expect(logitsOf(model)).toEqual(logitsOf(plain));
  });

  test("any other stops the load by name", () => {
    const tanh = "torch.nn.modules.activation.Tanh";
    expect(loadRefusal(declaring({ sentence_transformers: { activation_fn: tanh } }))).toMatch(
      /sentence_transformers\.activation_fn.*Tanh.*Sigmoid/,
    );
    expect(loadRefusal(declaring({ sbert_ce_default_activation_function: tanh }))).toMatch(
      /sbert_ce_default_activation_function.*Tanh/,
    );
  });
});

describe("pairs that the network cannot take", () => {
  type Stored = { post_processor: unknown; model: { vocab: Record<string, number> } };
  const withTokenizer = (change: (file: Stored) => void) => {
    const directory = copyOfFixture("rerank-bert");
    editJson(join(directory, "tokenizer.json"), change);
    return directory;
  };
  const withPair = (pair: object[]) =>
    withTokenizer((file) => {
      const single = [{ Sequence: { id: "A", type_id: 0 } }];
      file.post_processor = { type: "TemplateProcessing", single, pair, special_tokens: {} };
    });
  const text = (id: string, type_id: number) => ({ Sequence: { id, type_id } });

  test("are told apart from failures", () => {
    const directory = withTokenizer(({ model }) => (model.vocab["zzzz"] = 5000));
    const model = loadReranker({ directory, device });
    const stray = new UnusableText(
      "has the token id 5000, which is outside of the vocabulary of 1000",
    );
    expect(() => model.prepare("zzzz")).toThrow(stray);
    const prepared = model.prepare("a");
    expect(() => prepared.pair("zzzz")).toThrow(stray);
    const bare = withPair([text("A", 0), text("B", 1)]);
    const blank = loadReranker({ directory: bare, device }).prepare(" ");
    expect(blank.pair("a").typeIds).toEqual(Int32Array.of(1));
    expect(() => blank.pair("\u200b")).toThrow(new UnusableText("has no tokens"));
  });

  test("stop the load where the template makes them", () => {
    expect(loadRefusal(withPair([text("A", 0), text("B", 2)]))).toContain(
      "gives tokens the type 2",
    );
    expect(loadRefusal(withPair([text("A", 0)]))).toContain("leaves B out of rows of two texts");
  });
});

test("the limit is the smallest of files, positions and flag", () => {
  const directory = copyOfFixture("rerank-roberta");
  editJson<{ model_max_length?: number }>(join(directory, "tokenizer_config.json"), (config) => {
    delete config.model_max_length;
  });
  expect(loadReranker({ directory, device }).facts.maxLength).toBe(128); // 130 positions, 2 of them for padding
  expect(loadReranker({ directory, device, maxLength: 20 }).facts.maxLength).toBe(20);
  expect(loadReranker({ directory, device, maxLength: 999 }).facts.maxLength).toBe(128);
});

test("batches leave no tensors behind", () => {
  const model = loadReranker({ directory: fixture("rerank-bert"), device });
  // A batch may still be letting go of what it computed with when its result has been read: the least of some counts.
  const settledBytes = () =>
    Math.min(
      ...Array.from({ length: 5 }, () => {
        logitsOf(model);
        return mx.activeBytes();
      }),
    );
  const before = settledBytes();
  for (let i = 0; i < 20; i++) logitsOf(model);
  for (let i = 0; i < 20; i++) model.start([model.prepare(QUERY).pair("dropped")]).drop();
  expect(settledBytes()).toBe(before);
});
