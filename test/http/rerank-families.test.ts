import { describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  CheckpointCopy,
  fixture,
  floatsOf,
  floatTensor,
  tensorNamed,
  type TensorTable,
} from "../checkpoints.ts";
import { run, type Server, startServer } from "../server.ts";
import { badRequest, expectDifferent, refusalOf } from "./answers.ts";
import {
  expectLogits,
  expectScores,
  rank,
  rankBare,
  referencePair,
  referencePairs,
  type ReferencePair,
  scores,
  scoresOf,
} from "./rankings.ts";
import { shuffledTexts } from "./texts.ts";

setDefaultTimeout(60_000);

const CLASSIFIERS = [
  "rerank-bert",
  "rerank-roberta",
  "rerank-xlm-roberta",
  "rerank-gte-new",
  "rerank-deberta-v2",
  "rerank-modernbert-cls",
  "rerank-modernbert-mean",
  "rerank-qwen3-seqcls",
];

/** Every pair of the reference alone, in both shapes, with its score, its logit and its tokens. */
async function expectReference(
  server: Server,
  pairs: readonly ReferencePair[],
  options = {},
): Promise<void> {
  expect(pairs.length).toBeGreaterThan(0);
  for (const { query, document, tokens, score, logit } of pairs) {
    const answer = await rank(server, { query, documents: [document], ...options });
    expectScores(scoresOf(answer.ranks), [score]);
    expect(answer.tokens).toBe(tokens);
    const raw = { query, texts: [document], raw_scores: true, ...options };
    expectLogits(scoresOf(await rankBare(server, raw)), [logit]);
  }
}

/** Each document under one query: beside the others as alone. */
async function expectIndependent(server: Server): Promise<void> {
  const documents = shuffledTexts(20, 120);
  const together = await scores(server, "how long should an egg boil", documents);
  for (const [i, document] of documents.entries()) {
    const alone = await scores(server, "how long should an egg boil", [document]);
    expectScores([together[i] ?? Number.NaN], alone);
  }
}

describe.each(CLASSIFIERS)("%s", (name) => {
  test("-m finds a reranker, whose scores and logits are the reference's", async () => {
    await using server = await startServer(["-m", fixture(name)]);
    await expectReference(server, referencePairs(name));
    await expectIndependent(server);
  });
});

describe("rerank-qwen3", () => {
  const name = "rerank-qwen3";
  const all = referencePairs(name);
  const instructed = all.filter(({ instruction }) => instruction !== undefined);
  const plain = all.filter(({ instruction }) => instruction === undefined);

  test("scores and logits are the reference's, with an instruction and without", async () => {
    await using server = await startServer(["--reranker-model", fixture(name)]);
    await expectReference(server, plain);
    for (const pair of instructed) {
      await expectReference(server, [pair], { instruction: pair.instruction });
      const same = plain.find(
        ({ query, document }) => query === pair.query && document === pair.document,
      );
      expectDifferent([pair.logit], [same?.logit ?? Number.NaN]);
    }
    const { query, document, logit } = referencePair(name, "relevant");
    const blank = { instruction: " \n", raw_scores: true };
    expectLogits(await scores(server, query, [document], blank), [logit]);
    await expectIndependent(server);
  });

  test("documents under one query score as each pair alone, whatever the batch size", async () => {
    const { query } = referencePair(name, "relevant");
    const pairs = plain.filter((pair) => pair.query === query);
    expect(pairs.length).toBeGreaterThan(1);
    for (const flags of [[], ["--rerank-batch-size", "1"], ["--batch-tokens", "4"]]) {
      await using server = await startServer(["--reranker-model", fixture(name), ...flags]);
      const documents = pairs.map(({ document }) => document);
      const answer = await rank(server, { query, documents });
      expectScores(
        scoresOf(answer.ranks),
        pairs.map(({ score }) => score),
      );
      // The query's own tokens count for every pair, however often they are computed.
      expect(answer.tokens).toBe(pairs.reduce((sum, { tokens }) => sum + tokens, 0));
    }
  });

  test("requests for different queries and instructions at once do not reach one another", async () => {
    await using server = await startServer([
      ...["--reranker-model", fixture(name)],
      ...["--embedding-queue-depth", "200"],
    ]);
    const mixed = Array.from({ length: 5 }, () => all).flat();
    const answers = await Promise.all(
      mixed.map(({ query, document, instruction }) =>
        scores(server, query, [document, "a fox", document], { instruction }),
      ),
    );
    for (const [i, { score }] of mixed.entries()) {
      const [first = Number.NaN, , third = Number.NaN] = answers[i] ?? [];
      expectScores([first, third], [score, score]);
    }
  });
});

test("a classifier refuses an instruction", async () => {
  for (const name of ["rerank-bert", "rerank-qwen3-seqcls"]) {
    await using server = await startServer(["-m", fixture(name)]);
    const body = { query: "q", documents: ["a"], instruction: "Judge" };
    expect((await badRequest(server, body, "/v1/rerank")).param).toBe("instruction");
  }
});

describe("a head of zeros with the bias b", () => {
  const zeroHead = (bias: number) =>
    new CheckpointCopy("rerank-bert").tensors((table) => {
      const { shape } = tensorNamed(table, "classifier.weight");
      const zeros = new Float32Array(shape.reduce((a, b) => a * b, 1));
      table.set("classifier.weight", floatTensor(shape, zeros));
      table.set("classifier.bias", floatTensor([1], Float32Array.of(bias)));
    });

  test.each([
    [0, 0.5],
    [8.6, 0.99981584],
    [-11, 0.0000167014],
    [40, 1],
    [-40, 4.248354e-18],
  ])("b = %d scores %d: the sigmoid is applied once", async (bias, score) => {
    await using server = await startServer(["-m", zeroHead(bias).directory]);
    const body = { query: "how long", documents: ["an egg", "a fox"] };
    const probabilities = scoresOf((await rank(server, body)).ranks);
    for (const value of probabilities) {
      expect(Math.abs(value - score)).toBeLessThanOrEqual(1e-4 * score);
    }
    const texts = { query: body.query, texts: body.documents };
    expect(scoresOf(await rankBare(server, texts))).toEqual(probabilities);
    const raw = { raw_scores: true };
    const logit = Math.fround(bias);
    const logits = [
      scoresOf((await rank(server, { ...body, ...raw })).ranks),
      scoresOf(await rankBare(server, { ...texts, ...raw })),
    ];
    expect(logits.map((list) => list.map(Math.fround))).toEqual([
      [logit, logit],
      [logit, logit],
    ]);
  });

  test("large logits of a 16-bit checkpoint stay apart", async () => {
    const halves = async (bias: number) => {
      const copy = zeroHead(bias).tensors(toBfloat16);
      await using server = await startServer(["-m", copy.directory]);
      return await scores(server, "q", ["a"]);
    };
    const [nine = Number.NaN] = await halves(9);
    const [ten = Number.NaN] = await halves(10);
    expect(Math.abs(nine - 0.99987661)).toBeLessThan(1e-6);
    expect(Math.abs(ten - 0.9999546)).toBeLessThan(1e-6);
  });
});

/** Cuts every f32 down to its upper half. */
function toBfloat16(table: TensorTable): TensorTable {
  const cut = (values: Float32Array) =>
    new Uint8Array(Uint16Array.from(new Uint32Array(values.buffer), (bits) => bits >>> 16).buffer);
  return new Map(
    [...table].map(([name, tensor]) => [
      name,
      tensor.dtype === "F32"
        ? { dtype: "BF16", shape: tensor.shape, bytes: cut(floatsOf(tensor)) }
        : tensor,
    ]),
  );
}

describe("the halves of a pair", () => {
  test("BERT tells them apart by the token type: without its row 1 every score is another", async () => {
    const copy = new CheckpointCopy("rerank-bert").tensors((table) => {
      const name = "bert.embeddings.token_type_embeddings.weight";
      const { shape } = tensorNamed(table, name);
      const values = floatsOf(tensorNamed(table, name));
      table.set(name, floatTensor(shape, values.fill(0, values.length / 2)));
    });
    await using server = await startServer(["-m", copy.directory]);
    const pairs = referencePairs("rerank-bert");
    for (const { query, document, logit } of pairs) {
      const changed = await scores(server, query, [document], { raw_scores: true });
      expectDifferent(changed, [logit]);
    }
  });

  test.each(CLASSIFIERS)("%s: query and document are not the same to it", async (name) => {
    await using server = await startServer(["-m", fixture(name)]);
    const there = await scores(server, "the cat sleeps", ["a dog"], { raw_scores: true });
    expectDifferent(there, await scores(server, "a dog", ["the cat sleeps"], { raw_scores: true }));
  });
});

describe("checkpoints that are refused", () => {
  const refusedStart = async (flag: string, directory: string) => {
    const { exitCode, stderr } = await run(["serve", "--port", "0", flag, directory]);
    expect(exitCode).toBe(1);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    return stderr;
  };

  test.each(["-m", "--reranker-model"])("%s: a classifier of two labels", async (flag) => {
    const line = await refusedStart(flag, fixture("classifier-bert-2-labels"));
    expect(line).toContain("classifier-bert-2-labels");
    expect(line).toContain("2 labels");
  });

  test("two rows of the head count, whatever the config says of labels", async () => {
    const copy = new CheckpointCopy("classifier-bert-2-labels").set("config.json", {
      ...{ num_labels: 1, id2label: { 0: "LABEL_0" }, label2id: { LABEL_0: 0 } },
    });
    expect(await refusedStart("-m", copy.directory)).toContain("2 labels");
  });

  test("one row of the head counts, whatever the config says of labels", async () => {
    const copy = new CheckpointCopy("rerank-bert").set("config.json", {
      ...{ id2label: { 0: "no", 1: "yes" }, label2id: { no: 0, yes: 1 } },
    });
    await using server = await startServer(["-m", copy.directory]);
    await expectReference(server, [referencePair("rerank-bert", "relevant")]);
  });

  test("a head that is missing, and an activation that is neither sigmoid nor none", async () => {
    const headless = new CheckpointCopy("rerank-bert").tensors(
      (table) => void table.delete("classifier.weight"),
    );
    expect(await refusedStart("-m", headless.directory)).toContain("classifier.weight");
    const tanh = new CheckpointCopy("rerank-bert").set("config.json", {
      sentence_transformers: { activation_fn: "torch.nn.modules.activation.Tanh" },
    });
    expect(await refusedStart("-m", tanh.directory)).toContain("activation_fn");
  });

  test("a generative reranker whose vocabulary has no single yes", async () => {
    const copy = new CheckpointCopy("rerank-qwen3").edit("tokenizer.json", (content) =>
      withoutToken(content, "yes"),
    );
    expect(await refusedStart("--reranker-model", copy.directory)).toContain("yes");
  });
});

function withoutToken(content: Record<string, unknown>, token: string): Record<string, unknown> {
  const text = JSON.stringify(content);
  return JSON.parse(text.replaceAll(`"${token}":`, `"${token}\u0120":`));
}

test("a checkpoint that declares Identity scores by the sigmoid, and raw by its logit", async () => {
  const copy = new CheckpointCopy("rerank-bert").set("config.json", {
    sentence_transformers: { activation_fn: "torch.nn.modules.linear.Identity" },
  });
  await using server = await startServer(["-m", copy.directory]);
  await expectReference(server, referencePairs("rerank-bert"));
});

test("a score that is not a number is a 500, and the next request is served", async () => {
  const copy = new CheckpointCopy("rerank-bert").tensors((table) => {
    const name = "bert.embeddings.word_embeddings.weight";
    const { shape } = tensorNamed(table, name);
    const width = shape[1] ?? 0;
    const values = floatsOf(tensorNamed(table, name));
    table.set(name, floatTensor(shape, values.fill(Number.NaN, width, 2 * width)));
  });
  await using server = await startServer(["-m", copy.directory]);
  const healthy = { query: "the fox", documents: ["the vector"] };
  const before = await rank(server, healthy);
  // Token 1 is the unknown one.
  const unknown = "\u{10ffff}";
  for (const body of [
    { query: "the fox", documents: ["the vector", unknown] },
    { query: "the fox", texts: [unknown], raw_scores: true },
    { query: unknown, documents: ["the vector"] },
  ]) {
    const [broken, beside] = await Promise.all([
      server.post("/v1/rerank", body),
      rank(server, healthy),
    ]);
    expect(await refusalOf(broken)).toMatchObject({ status: 500, type: "server_error" });
    expectScores(scoresOf(beside.ranks), scoresOf(before.ranks));
  }
});
