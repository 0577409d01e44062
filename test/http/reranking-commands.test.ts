/** `mlxcel rerank` and `mlxcel embed`: the numbers of the server, without the server. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { mlxcel } from "../../src/cli/testing/mlxcel.ts";
import { expected, fixture, temporaryDirectory } from "../checkpoints.ts";
import { python } from "../setup/python.ts";
import { startServer } from "../server.ts";
import { embed, expectVectors } from "./answers.ts";
import { expectLogits, expectScores, rank, referencePairs, type Rank } from "./rankings.ts";
import { shuffledTexts, words } from "./texts.ts";

setDefaultTimeout(60_000);

const RerankAnswer = z.strictObject({
  model: z.string(),
  object: z.literal("list"),
  results: z.array(
    z.strictObject({ index: z.int(), relevance_score: z.number(), document: z.string() }),
  ),
  usage: z.strictObject({ prompt_tokens: z.number(), total_tokens: z.number() }),
});
const EmbedAnswer = z.looseObject({
  data: z.array(z.looseObject({ embedding: z.array(z.number()) })),
  usage: z.looseObject({ total_tokens: z.number() }),
});

interface Ran {
  readonly args: readonly string[];
  readonly stdin?: string;
}

async function answered({ args, stdin }: Ran): Promise<string> {
  const { stdout, stderr, code } = await mlxcel(args, stdin);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

async function ranked(args: readonly string[], stdin?: string): Promise<Rank[]> {
  const json = await answered({ args: ["rerank", "--json", ...args], ...(stdin ? { stdin } : {}) });
  return RerankAnswer.parse(JSON.parse(json)).results.map(
    ({ index, relevance_score, document }) => ({ index, score: relevance_score, echo: document }),
  );
}

/** Exit code and the one line of a command that must fail; nothing goes to stdout. */
async function failure(args: readonly string[]): Promise<{ code: number; line: string }> {
  const { stdout, stderr, code } = await mlxcel(args);
  expect(stdout).toBe("");
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  return { code, line: stderr };
}

function file(name: string, content: string): string {
  const path = join(temporaryDirectory(), name);
  writeFileSync(path, content);
  return path;
}

describe("mlxcel rerank", () => {
  const QUERY = "how long should an egg boil";
  const asked = ["-m", fixture("rerank-bert"), "-q", QUERY];

  test.each([
    "rerank-bert",
    "rerank-roberta",
    "rerank-xlm-roberta",
    "rerank-modernbert-cls",
    "rerank-qwen3",
    "rerank-qwen3-seqcls",
  ])("%s: scores and logits are the reference's", async (name) => {
    const pairs = referencePairs(name).filter(
      ({ query, instruction }) => query === QUERY && instruction === undefined,
    );
    const best = pairs.toSorted((a, b) => b.score - a.score);
    const args = ["-m", fixture(name), "-q", QUERY, "-d", ...pairs.map((pair) => pair.document)];
    const ranks = await ranked(args);
    expect(ranks.map(({ echo }) => echo)).toEqual(best.map(({ document }) => document));
    expectScores(
      ranks.map(({ score }) => score),
      best.map(({ score }) => score),
    );
    const raw = await ranked([...args, "--raw-scores"]);
    expectLogits(
      raw.map(({ score }) => score),
      best.map(({ logit }) => logit),
    );
  });

  test("--instruction reaches a generative reranker", async () => {
    const pairs = referencePairs("rerank-qwen3").filter(({ instruction }) => instruction);
    for (const { query, document, instruction = "", score } of pairs) {
      const args = ["-m", fixture("rerank-qwen3"), "-q", query, "-d", document];
      const ranks = await ranked([...args, "--instruction", instruction]);
      expectScores([ranks[0]?.score ?? Number.NaN], [score]);
    }
  });

  test("an embedder ranks by the cosine that the server gives", async () => {
    const documents = shuffledTexts(5, 30);
    const model = fixture("qwen3-embed");
    await using server = await startServer(["--embedding-model", model, "--rerank"]);
    const { ranks } = await rank(server, { query: QUERY, documents, return_documents: true });
    const { stdout, stderr, code } = await mlxcel([
      ...["rerank", "-m", model, "-q", QUERY, "--json", "-d", ...documents],
    ]);
    expect(code).toBe(0);
    expect(stderr).not.toContain("rror");
    const { results } = RerankAnswer.parse(JSON.parse(stdout));
    expect(results.map(({ index }) => index)).toEqual(ranks.map(({ index }) => index));
    expectScores(
      results.map(({ relevance_score }) => relevance_score),
      ranks.map(({ score }) => score),
    );
  });

  test("documents come from -d, a text file, JSON lines or stdin, in that order", async () => {
    const texts = ["first", "second line", "third"];
    const wanted = await ranked([...asked, "-d", ...texts]);
    const plain = file("docs.txt", "second line\r\nthird\r\n");
    const json = '"second line"\n"third"\n';
    expect(await ranked([...asked, "-d", "first", "--file", plain])).toEqual(wanted);
    const jsonl = file("docs.jsonl", json);
    expect(await ranked([...asked, "-d", "first", "-f", jsonl])).toEqual(wanted);
    const odd = file("docs.txt", json);
    expect(await ranked([...asked, "-d", "first", "-f", odd, "--jsonl"])).toEqual(wanted);
    expect(await ranked([...asked, "-d", "first", "-f", "-"], "second line\nthird")).toEqual(
      wanted,
    );
  });

  test("two thousand lines of a file are ranked as a whole, and --top-n keeps the best", async () => {
    const distinct = shuffledTexts(40, 20);
    const lines = Array.from({ length: 2000 }, (_, i) => distinct[i % 40] ?? "");
    const path = file("docs.txt", lines.join("\n"));
    const ranks = await ranked([...asked, "--file", path]);
    expect(ranks).toHaveLength(lines.length);
    for (const { index, echo } of ranks) expect(echo).toBe(lines[index]);
    expect(ranks).toEqual(ranks.toSorted((a, b) => b.score - a.score || a.index - b.index));
    expect(await ranked([...asked, "--file", path, "-n", "7"])).toEqual(ranks.slice(0, 7));
  });

  test("a flag may stand behind the documents with its value after =", async () => {
    const wanted = await ranked([...asked, "-d", "an egg", "a fox"]);
    expect(await ranked([...asked, "-d", "an egg", "a fox", "--top-n=1"])).toEqual(
      wanted.slice(0, 1),
    );
    const dashed = await ranked([...asked, "-d", "-5 degrees", "-- a dash", "--"]);
    expect(dashed.map(({ echo }) => echo).toSorted()).toEqual(["--", "-- a dash", "-5 degrees"]);
  });

  test("the table is aligned, best first, and goes to a file with -o", async () => {
    const args = ["rerank", ...asked, "-d", "an egg", "a fox\nin two lines", words(200)];
    const { stdout, stderr, code } = await mlxcel(args);
    expect(code).toBe(0);
    expect(stderr).toMatch(/1 of the pairs cut/);
    const [head, ...lines] = stdout.trimEnd().split("\n");
    expect(head?.trim().split(/\s+/)).toEqual(["score", "#", "document"]);
    expect(lines).toHaveLength(3);
    const shown = lines.map((line) => Number(line.trim().split(/\s+/)[0]));
    expect(shown).toEqual(shown.toSorted((a, b) => b - a));
    expect(stdout).not.toContain("\u001b");
    const path = join(temporaryDirectory(), "table.txt");
    const toFile = await mlxcel([...args, "-o", path]);
    expect(toFile).toMatchObject({ code: 0, stdout: "" });
    expect(await Bun.file(path).text()).toBe(stdout);
  });

  const bad: [readonly string[], number, string][] = [
    [["-q", "q"], 2, "-d"],
    [["-d", "a"], 2, "-q"],
    [["-q", "", "-d", "a"], 2, "-q"],
    [["-q", "q", "-d", "a", ""], 2, "document 2 behind -d has no text"],
    [["-q", "q", "-d", "a", "--top-n", "0"], 2, "--top-n"],
    [["-q", "q", "-d", "a", "--top-n", "x"], 2, "--top-n"],
    [["-q", "q", "-d", "a", "--frobnicate"], 2, "--frobnicate"],
    [["-q", "q", "-d", "a", "--top-n=0"], 2, "--top-n"],
    [["-q", "q", "-d", "a", "--instruction", "Judge"], 2, "instruction"],
    [["-q", "q", "--file", "no-such-file.txt"], 2, "no-such-file.txt"],
    [["-q", "q", "-d", "a", "-m", "./no-such-model"], 1, "no-such-model"],
    [["-q", "q", "-d", "a", "-m", "nobody/nothing"], 1, "nobody/nothing"],
    [["-q", "q", "-d", "a", "-m", fixture("classifier-bert-2-labels")], 1, "2 labels"],
    [["-q", "q", "--file", file("empty.txt", "")], 2, "empty"],
    [["-q", "q", "--file", file("gap.txt", "a\n\nb\n")], 2, "line 2"],
    [["-q", "q", "--file", file("bad.jsonl", '"a"\n{"title":"b"}\n')], 2, "line 2"],
  ];
  test.each(bad)("%j exits with %d and one line", async (args, code, name) => {
    const exit = await failure(["rerank", "-m", fixture("rerank-bert"), ...args]);
    expect(exit.line).toContain(name);
    expect(exit.code).toBe(code);
  });
});

describe("mlxcel embed", () => {
  const cases = expected("bert-mean").cases.filter(
    ({ input }) => typeof input === "string" && !/[\n\r]/.test(input) && input.trim() !== "",
  );
  const texts = cases.map(({ input }) => String(input));
  const model = ["-m", fixture("bert-mean")];

  test("--json gives the reference's vectors, tokens counted after cutting", async () => {
    const { stdout, stderr, code } = await mlxcel(["embed", ...model, "--json", "-t", ...texts]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/1 of the texts cut/);
    const { data, usage } = EmbedAnswer.parse(JSON.parse(stdout));
    expectVectors(
      data.map(({ embedding }) => embedding),
      cases.map(({ embedding }) => embedding),
    );
    expect(usage.total_tokens).toBe(cases.reduce((sum, entry) => sum + entry.prompt_tokens, 0));
  });

  test("--npy is read back by NumPy, from stdout and from a file", async () => {
    const path = file("texts.txt", texts.join("\n"));
    const npy = join(temporaryDirectory(), "vectors.npy");
    const args = ["embed", ...model, "--file", path, "--npy"];
    expect(await mlxcel([...args, "-o", npy])).toMatchObject({ code: 0, stdout: "" });
    expect((await mlxcel(args)).bytes).toEqual(await Bun.file(npy).bytes());
    const script =
      "import json,sys,numpy;a=numpy.load(sys.argv[1]);print(json.dumps([str(a.dtype),a.tolist()]))";
    const numpy = Bun.spawnSync([python, "-c", script, npy]);
    expect(numpy.stderr.toString()).toBe("");
    const [dtype, vectors] = z
      .tuple([z.string(), z.array(z.array(z.number()))])
      .parse(JSON.parse(numpy.stdout.toString()));
    expect(dtype).toBe("float32");
    expectVectors(
      vectors,
      cases.map(({ embedding }) => embedding),
    );
  });

  test("a thousand JSON lines from stdin are those of the server", async () => {
    const distinct = shuffledTexts(30, 30);
    const list = Array.from({ length: 1000 }, (_, i) => distinct[i % 30] ?? "");
    const lines = list.map((text, i) => JSON.stringify(i % 2 ? text : { text })).join("\n");
    const args = ["embed", ...model, "--json", "--jsonl", "-f", "-"];
    const json = await answered({ args, stdin: lines });
    await using server = await startServer(["--embedding-model", fixture("bert-mean")]);
    const { vectors, tokens } = await embed(server, { input: list });
    const { data, usage } = EmbedAnswer.parse(JSON.parse(json));
    expectVectors(
      data.map(({ embedding }) => embedding),
      vectors,
    );
    expect(usage.total_tokens).toBe(tokens);
  });

  test("prompts, instructions, dimensions and normalisation are those of the server", async () => {
    const path = fixture("qwen3-embed");
    await using server = await startServer(["--embedding-model", path]);
    const options: [readonly string[], object][] = [
      [["--prompt-name", "query"], { prompt_name: "query" }],
      [["--instruction", "Find recipes"], { instruction: "Find recipes" }],
      [["--dimensions", "7"], { dimensions: 7 }],
      [["--embd-normalize", "-1"], { embd_normalize: -1 }],
    ];
    for (const [flags, fields] of options) {
      const args = ["embed", "-m", path, "--json", "-t", "boil an egg", ...flags];
      const { data } = EmbedAnswer.parse(JSON.parse(await answered({ args })));
      const { vectors } = await embed(server, { input: ["boil an egg"], ...fields });
      expectVectors(
        data.map(({ embedding }) => embedding),
        vectors,
      );
    }
  });

  test("the table names each text, its tokens and the width", async () => {
    const table = await answered({ args: ["embed", ...model, "-t", "boil an egg", "fox"] });
    const [head, first, second] = table.split("\n");
    expect(head?.trim().split(/\s+/)).toEqual(["#", "text", "tokens", "vector"]);
    expect(first).toContain("boil an egg");
    expect(second).toMatch(/^1 +fox +3 /);
    expect(table).toContain("64 dimensions");
  });

  test.each([
    [[], 2, "-t"],
    [["-t", "a", ""], 2, "text 2 behind -t is an empty string"],
    [["-t", "a", "--json", "--npy"], 2, "--npy"],
    [["-t", "a", "--dimensions", "0"], 2, "dimensions"],
    [["-t", "a", "--dimensions=65"], 2, "dimensions"],
    [["-t", "a", "--frobnicate"], 2, "--frobnicate"],
    [["-t", "a", "--dimensions", "65"], 2, "dimensions"],
    [["-t", "a", "--prompt-name", "nope"], 2, "nope"],
    [["--file", "no-such-file.txt"], 2, "no-such-file.txt"],
    [["-t", "a", "-m", fixture("rerank-bert")], 1, "mlxcel rerank"],
    [["-t", "a", "-m", fixture("rerank-qwen3")], 1, "not an embedding model"],
    [["-t", "a", "-m", "./no-such-model"], 1, "no-such-model"],
    [["stray"], 2, "stray"],
  ] as const)("%j exits with %d and one line", async (args, code, name) => {
    const exit = await failure(["embed", ...model, ...args]);
    expect(exit.line).toContain(name);
    expect(exit.code).toBe(code);
  });
});

test("each command has its own help", async () => {
  for (const command of ["rerank", "embed"]) {
    const { stdout, stderr, code } = await mlxcel([command, "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const flag of ["--model", "--file", "--json"]) expect(stdout).toContain(flag);
    expect((await mlxcel(["--help"])).stdout).toContain(`mlxcel ${command}`);
  }
});
