import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { CheckpointCopy, fixture, temporaryDirectory } from "../checkpoints.ts";
import { type Environment, run, type Server, startServer } from "../server.ts";
import { badRequest, embed, expectAlive, okJson, refusalOf } from "./answers.ts";
import {
  expectLogits,
  expectNoEmbeddings,
  expectRanks,
  expectScores,
  rank,
  referencePair,
  scores,
} from "./rankings.ts";
import { shuffledTexts, words } from "./texts.ts";

setDefaultTimeout(60_000);

const EMBEDDER = fixture("bert-mean");
const RERANKER = fixture("rerank-bert");
const GENERATIVE = fixture("rerank-qwen3");
const relevant = referencePair("rerank-bert", "relevant");

const Entries = z.array(z.looseObject({ id: z.string(), kind: z.string() }));

/** Id and kind of every model that is listed, the same in both lists. */
async function listed(server: Server): Promise<string[][]> {
  const list = z.object({ data: Entries }).parse(await okJson(await server.get("/v1/models")));
  const props = z.object({ models: Entries }).parse(await okJson(await server.get("/props")));
  const both = [list.data, props.models].map((models) => models.map(({ id, kind }) => [id, kind]));
  expect(both[0]).toEqual(both[1]);
  return both[0] ?? [];
}

async function expectNoRanking(server: Server): Promise<void> {
  for (const path of ["/v1/rerank", "/v2/rerank"]) {
    const refusal = await refusalOf(await server.post(path, { query: "q", documents: ["a"] }));
    expect(refusal).toMatchObject({ status: 501, type: "not_implemented" });
    expect(refusal.message).toContain("--reranker-model");
  }
}

async function expectNoChat(server: Server): Promise<void> {
  for (const path of ["/v1/chat/completions", "/v1/completions"]) {
    const refusal = await refusalOf(await server.post(path, { messages: [] }));
    expect(refusal).toMatchObject({ status: 501, type: "not_implemented" });
    expect(refusal.message).toContain("-m");
  }
}

async function refusedStart(
  args: readonly string[],
  env?: Environment,
): Promise<{ exitCode: number; line: string }> {
  const { exitCode, stderr } = await run(["serve", "--port", "0", ...args], env);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  return { exitCode, line: stderr };
}

interface Served {
  readonly flags: readonly string[];
  readonly embeds: boolean;
  readonly ranks: boolean;
  readonly models: readonly (readonly string[])[];
}

const embedding = ["bert-mean", "embedding"];
const reranker = ["rerank-bert", "reranker"];
const generative = ["rerank-qwen3", "reranker"];
const biEncoder = ["bert-mean", "bi_encoder"];
const named = ["--embedding-model", EMBEDDER];
const both = [...named, "--reranker-model", RERANKER];

const SERVED: Served[] = [
  { flags: named, embeds: true, ranks: false, models: [embedding] },
  { flags: ["-m", RERANKER], embeds: false, ranks: true, models: [reranker] },
  { flags: ["--reranker-model", RERANKER], embeds: false, ranks: true, models: [reranker] },
  { flags: ["--reranker-model", GENERATIVE], embeds: false, ranks: true, models: [generative] },
  {
    flags: ["-m", GENERATIVE, "--reranker-model", GENERATIVE],
    ...{ embeds: false, ranks: true, models: [generative] },
  },
  {
    flags: ["-m", RERANKER, "--reranker-model", RERANKER],
    ...{ embeds: false, ranks: true, models: [reranker] },
  },
  { flags: both, embeds: true, ranks: true, models: [embedding, reranker] },
  {
    flags: [...named, "-m", RERANKER],
    ...{ embeds: true, ranks: true, models: [embedding, reranker] },
  },
  {
    flags: ["-m", EMBEDDER, "--reranker-model", RERANKER],
    ...{ embeds: true, ranks: true, models: [embedding, reranker] },
  },
  { flags: [...both, "--rerank"], embeds: false, ranks: true, models: [reranker] },
  { flags: [...both, "--reranking"], embeds: false, ranks: true, models: [reranker] },
  { flags: [...both, "--pooling", "rank"], embeds: false, ranks: true, models: [reranker] },
  { flags: [...both, "--embedding"], embeds: true, ranks: false, models: [embedding] },
  { flags: [...both, "--embeddings"], embeds: true, ranks: false, models: [embedding] },
  {
    flags: [...both, "--embedding", "--rerank"],
    ...{ embeds: true, ranks: true, models: [embedding, reranker] },
  },
  {
    flags: [...named, "--rerank"],
    ...{ embeds: true, ranks: true, models: [embedding, biEncoder] },
  },
  {
    flags: [...named, "--embedding", "--rerank"],
    ...{ embeds: true, ranks: true, models: [embedding, biEncoder] },
  },
  {
    flags: ["-m", EMBEDDER, "--pooling", "rank"],
    ...{ embeds: true, ranks: true, models: [embedding, biEncoder] },
  },
  { flags: ["-m", RERANKER, "--rerank"], embeds: false, ranks: true, models: [reranker] },
];

/** Paths are of this machine and long. */
const short = (flags: readonly string[]) =>
  flags.map((flag) => flag.replace(/^.*\//, "")).join(" ");

describe("which models a server has", () => {
  test.each(SERVED.map((served) => [short(served.flags), served] as const))(
    "%s",
    async (_, { flags, embeds, ranks, models }) => {
      await using server = await startServer(flags);
      expect(await listed(server)).toEqual(models.map((model) => [...model]));
      if (embeds) await expectAlive(server);
      else await expectNoEmbeddings(server);
      if (ranks) await expectRanks(server);
      else await expectNoRanking(server);
      await expectNoChat(server);
      const kinds = models.map(([, kind]) => kind);
      if (kinds.includes("reranker")) expect(server.stdout()).toMatch(/reranker +rerank-/);
      // What is named but not loaded is said.
      if (flags.length > 4 && models.length === 1) expect(server.stderr()).toContain("not loaded");
    },
  );

  test("a model that is not served cannot be named", async () => {
    await using server = await startServer(both);
    const embedName = { query: "q", documents: ["a"], model: "bert-mean" };
    expect((await badRequest(server, embedName, "/v1/rerank")).code).toBe("model_not_found");
    const rerankName = { input: "a", model: "rerank-bert" };
    expect((await badRequest(server, rerankName)).code).toBe("model_not_found");
    expect((await server.get("/v1/models/rerank-bert")).status).toBe(200);
  });

  test("--alias names the model of -m, else the embedder", async () => {
    const answers = async (flags: readonly string[]) => {
      await using server = await startServer([...flags, "--alias", "mine"]);
      const ranked = { query: "q", documents: ["a"], model: "mine" };
      return [
        (await server.post("/v1/embeddings", { input: "a", model: "mine" })).status,
        (await server.post("/v1/rerank", ranked)).status,
      ];
    };
    expect(await answers(both)).toEqual([200, 400]);
    expect(await answers([...named, "-m", RERANKER])).toEqual([400, 200]);
    expect(await answers(["--reranker-model", RERANKER])).toEqual([501, 200]);
  });

  test("variables name a reranker and its flags, a repository goes by its whole name", async () => {
    const store = temporaryDirectory();
    cpSync(RERANKER, join(store, "demo/judge"), { recursive: true });
    await using server = await startServer(["--models-dir", store], {
      env: { MLXCEL_RERANKER_MODEL: "demo/judge", MLXCEL_RERANK_SCORES: "raw" },
    });
    for (const model of ["judge", "demo/judge"]) {
      const body = { model, query: relevant.query, documents: [relevant.document] };
      const answer = await rank(server, body);
      expect(answer.model).toBe("judge");
      expectLogits([answer.ranks[0]?.score ?? Number.NaN], [relevant.logit]);
    }
  });
});

describe("starts that fail: one line, exit code 1", () => {
  const chat = new CheckpointCopy("rerank-qwen3");

  test("a generator as -m alone, with the way out", async () => {
    const { exitCode, line } = await refusedStart(["-m", chat.directory]);
    expect(exitCode).toBe(1);
    expect(line).toContain("is a chat model");
    expect(line).toContain("--reranker-model");
  });

  test.each([
    [["--reranker-model", EMBEDDER], "--rerank"],
    [["--embedding-model", RERANKER], "rerank-bert"],
    [["--embedding-model", GENERATIVE], "rerank-qwen3"],
    [["--reranker-model", "./no-such-model"], "no-such-model"],
    [["-m", RERANKER, "--embedding"], "--embedding"],
    [["--reranker-model", "nobody/nothing"], "nobody/nothing"],
    [["-m", fixture("classifier-bert-2-labels")], "2 labels"],
    [[...named, "--reranker-model", fixture("classifier-bert-2-labels")], "2 labels"],
  ])("%j names %s", async (flags, name) => {
    const { exitCode, line } = await refusedStart(flags);
    expect(exitCode).toBe(1);
    expect(line).toContain(name);
  });
});

describe("wrong command lines: one line, exit code 2", () => {
  test("two rerankers name both", async () => {
    const flags = ["-m", RERANKER, "--reranker-model", fixture("rerank-roberta")];
    const { exitCode, line } = await refusedStart(flags);
    expect(exitCode).toBe(2);
    for (const name of ["rerank-bert", "rerank-roberta"]) expect(line).toContain(name);
  });

  test.each([
    [["--rerank-scores", "logit"], "--rerank-scores"],
    [["--rerank-scores"], "--rerank-scores"],
    [["--rerank-batch-size", "-1"], "--rerank-batch-size"],
    [["--rerank-batch-size", "many"], "--rerank-batch-size"],
    [["--reranker-model"], "--reranker-model"],
    [["--rerank-model", RERANKER], "--reranker-model"],
  ])("%j names %s", async (flags, name) => {
    const { exitCode, line } = await refusedStart(flags);
    expect(exitCode).toBe(2);
    expect(line).toContain(name);
  });
});

test("--rerank-scores raw sets the default; the request beats it", async () => {
  await using server = await startServer(["-m", RERANKER, "--rerank-scores", "raw"]);
  const { query, document, score, logit } = relevant;
  expectLogits(await scores(server, query, [document]), [logit]);
  expectLogits(await scores(server, query, [document], { raw_scores: true }), [logit]);
  expectScores(await scores(server, query, [document], { raw_scores: false }), [score]);
});

test("--rerank-scores sigmoid is the default", async () => {
  await using server = await startServer(["-m", RERANKER, "--rerank-scores", "sigmoid"]);
  expectScores(await scores(server, relevant.query, [relevant.document]), [relevant.score]);
});

describe("rows per forward are invisible", () => {
  const documents = shuffledTexts(40, 90);

  test.each([
    ["--rerank-batch-size", "1"],
    ["--rerank-batch-size", "3"],
    ["--rerank-batch-size", "0"],
    ["--batch-tokens", "4"],
  ])("%s %s", async (flag, value) => {
    await using plain = await startServer(["-m", RERANKER]);
    await using capped = await startServer(["-m", RERANKER, flag, value]);
    const wanted = await rank(plain, { query: relevant.query, documents });
    const given = await rank(capped, { query: relevant.query, documents });
    expect(given.tokens).toBe(wanted.tokens);
    expectScores(
      given.ranks.map(({ score }) => score),
      wanted.ranks.map(({ score }) => score),
    );
    expect(given.ranks.map(({ index }) => index)).toEqual(wanted.ranks.map(({ index }) => index));
  });
});

test("-c is for the embedder where there is one, else for pairs", async () => {
  const text = words(60);
  const limits = async (flags: readonly string[]) => {
    await using server = await startServer([...flags, "-c", "16"]);
    const pair = await rank(server, { query: "fox", documents: [text] });
    return { pair, tokens: flags === both ? (await embed(server, { input: text })).tokens : 0 };
  };
  const together = await limits(both);
  expect(together.tokens).toBe(16);
  expect(together.pair).toMatchObject({ tokens: 64, truncated: null });
  const alone = await limits(["-m", RERANKER]);
  expect(alone.pair).toMatchObject({ tokens: 16, truncated: "1" });
});
