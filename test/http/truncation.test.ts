import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { CheckpointCopy, expected, fixture } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import { badRequest, embed, embedNative, embedOne, expectVector, refusalOf } from "./answers.ts";
import { tokenize } from "./tokens.ts";
import { words } from "./texts.ts";

setDefaultTimeout(60_000);

const LIMIT = expected("bert-mean").max_length;
const CLS = 2;
const SEP = 3;
const tooLong = words(LIMIT);
const exact = words(LIMIT - 2);

let server: Server;
beforeAll(async () => {
  server = await startServer(["--embedding-model", fixture("bert-mean")]);
});
afterAll(() => server?.stop());

async function expectLimit(running: Server, limit: number): Promise<void> {
  const text = words(limit + 300);
  const answer = await embed(running, { input: text });
  expect(answer.tokens).toBe(limit);
  expect(answer.truncated).toBe("1");
  const ids = await tokenize(running, text);
  const kept = [CLS, ...ids.slice(0, limit - 2), SEP];
  expectVector(answer.vectors[0] ?? [], await embedOne(running, kept));
  expect((await embed(running, { input: words(limit - 2) })).truncated).toBeNull();
}

describe("over-long input", () => {
  test("is cut with the special tokens kept at both ends, and counted as cut", async () => {
    await expectLimit(server, LIMIT);
  });

  test("the header counts the items that were cut; none is no header", async () => {
    const answer = await embed(server, { input: [tooLong, "vector", exact, tooLong, words(900)] });
    expect(answer.truncated).toBe("3");
    expect(answer.tokens).toBe(LIMIT + 3 + LIMIT + LIMIT + LIMIT);
    expect((await embed(server, { input: ["vector", exact] })).truncated).toBeNull();
    const native = await server.post("/embedding", { input: [tooLong, "vector"] });
    expect(native.headers.get("x-mlxcel-truncated")).toBe("1");
    const tei = await server.post("/embed", { inputs: [tooLong, tooLong] });
    expect(tei.headers.get("x-mlxcel-truncated")).toBe("2");
  });

  test("too many token ids are cut to the first n, verbatim", async () => {
    const ids = Array.from({ length: LIMIT + 50 }, (_, i) => 200 + (i % 700));
    const answer = await embed(server, { input: ids });
    expect(answer.tokens).toBe(LIMIT);
    expect(answer.truncated).toBe("1");
    expectVector(answer.vectors[0] ?? [], await embedOne(server, ids.slice(0, LIMIT)));
  });

  test("truncate:false refuses the whole request, naming the item", async () => {
    const refused: [unknown, string][] = [
      [tooLong, "input"],
      [["vector", "search", tooLong, "query"], "input[2]"],
      [[[CLS, SEP], Array(LIMIT + 1).fill(7)], "input[1]"],
      [Array(LIMIT + 1).fill(7), "input"],
      [[...Array(60).fill("vector"), tooLong], "input[60]"],
    ];
    for (const [input, param] of refused) {
      const refusal = await badRequest(server, { input, truncate: false });
      expect(refusal.param).toBe(param);
      expect(refusal.message).toContain(param);
      expect(refusal.message).toContain("too large");
      expect(refusal.message).toContain("exceeds maximum context length");
    }
    const native = await badRequest(
      server,
      { content: ["a", tooLong], truncate: false },
      "/embedding",
    );
    expect(native.param).toBe("content[1]");
    const tei = await badRequest(server, { inputs: ["a", tooLong], truncate: false }, "/embed");
    expect(tei.param).toBe("inputs[1]");
  });

  test("truncate:false lets through what fits exactly", async () => {
    expect((await embed(server, { input: exact, truncate: false })).tokens).toBe(LIMIT);
    const ids = Array(LIMIT).fill(7);
    expect((await embed(server, { input: ids, truncate: false })).tokens).toBe(LIMIT);
  });

  test.each([
    [["--no-truncate"], "refuse"],
    [["--truncate", "error"], "refuse"],
    [["--truncate", "on", "--no-truncate"], "refuse"],
    [["--no-truncate", "--truncate", "on"], "cut"],
  ])("%j: by default %s; the request beats the flag", async (flags, what) => {
    await using flagged = await startServer(["--embedding-model", fixture("bert-mean"), ...flags]);
    const response = await flagged.post("/v1/embeddings", { input: tooLong });
    expect(response.status).toBe(what === "refuse" ? 400 : 200);
    if (what === "refuse") expect((await refusalOf(response)).message).toContain("too large");
    expect((await embed(flagged, { input: tooLong, truncate: true })).tokens).toBe(LIMIT);
    await badRequest(flagged, { input: tooLong, truncate: false });
  });
});

describe("the limit", () => {
  const noSentenceLimit = () => new CheckpointCopy("bert-mean").remove("sentence_bert_config.json");

  test("is the sentence model's own, whatever tokenizer.json and the position table say", async () => {
    const copy = new CheckpointCopy("bert-mean")
      .positions(512)
      .set("sentence_bert_config.json", { max_seq_length: 256 })
      .set("tokenizer_config.json", { model_max_length: 512 })
      .set("tokenizer.json", {
        truncation: { direction: "Right", max_length: 128, strategy: "LongestFirst", stride: 0 },
      });
    await using running = await startServer(["--embedding-model", copy.directory]);
    await expectLimit(running, 256);
  });

  test("without a sentence model's limit is the position table's, on long contexts too", async () => {
    const copy = noSentenceLimit()
      .positions(8192)
      .set("tokenizer_config.json", { model_max_length: 1e30 });
    await using running = await startServer(["--embedding-model", copy.directory]);
    const answer = await embed(running, { input: words(2000) });
    expect(answer).toMatchObject({ tokens: 2002, truncated: null });
    const ids = await tokenize(running, words(2000));
    expectVector(answer.vectors[0] ?? [], await embedOne(running, [CLS, ...ids, SEP]));
  });

  test("is never above the position table", async () => {
    const copy = new CheckpointCopy("bert-mean")
      .set("sentence_bert_config.json", { max_seq_length: 512 })
      .set("tokenizer_config.json", { model_max_length: 512 });
    await using running = await startServer(["--embedding-model", copy.directory]);
    await expectLimit(running, 128);
  });

  test("is the tokenizer config's when that is the smallest", async () => {
    const copy = noSentenceLimit().set("tokenizer_config.json", { model_max_length: 40 });
    await using running = await startServer(["--embedding-model", copy.directory]);
    await expectLimit(running, 40);
  });

  test.each([
    [["--embedding-max-length", "16"], 16],
    [["-c", "16"], 16],
    [["--ctx-size", "0"], LIMIT],
    [["--embedding-max-length", "100000"], LIMIT],
  ])("%j can only lower it: %d", async (flags, limit) => {
    await using running = await startServer(["--embedding-model", fixture("bert-mean"), ...flags]);
    await expectLimit(running, limit);
    if (flags[1] === "100000") expect(running.stderr() + running.stdout()).toContain("100000");
  });

  test("one item too long for a small limit does not disturb its neighbours", async () => {
    await using running = await startServer([
      ...["--embedding-model", fixture("bert-mean")],
      ...["--embedding-max-length", "8"],
    ]);
    const [cut, whole] = await embedNative(running, { input: [words(50), words(3)] });
    expectVector(whole ?? [], await embedOne(server, words(3)));
    expectVector(cut ?? [], await embedOne(server, words(6).concat(" ")));
  });
});
