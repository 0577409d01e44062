/** Runs the real program on reference checkpoints. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { z } from "zod";
import {
  copyOfFixture,
  editJson,
  fixture,
  temporaryDirectory,
} from "../../test/fixtures/fixtures.ts";
import { mlxcel } from "./testing/mlxcel.ts";

const QUERY = "a cat that sleeps";
const DOCUMENTS = ["it rains", "the cat sleeps", "a dog", "the cat sleeps"];

const Envelope = z.strictObject({
  model: z.string(),
  object: z.literal("list"),
  results: z.array(
    z.strictObject({ index: z.number(), relevance_score: z.number(), document: z.string() }),
  ),
  usage: z.strictObject({ prompt_tokens: z.number(), total_tokens: z.number() }),
});

async function ranked(model: string, args: readonly string[]) {
  const command = ["rerank", "-m", fixture(model), "-q", QUERY, "--json", ...args];
  const { stdout, stderr, code } = await mlxcel(command);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return Envelope.parse(JSON.parse(stdout));
}

describe.each(["rerank-bert", "rerank-qwen3", "bert-mean", "colbert-bert"])("%s", (model) => {
  test("--json ranks every document, in the form of /v1/rerank", async () => {
    const { model: id, results } = await ranked(model, ["-d", ...DOCUMENTS]);
    expect(id).toBe(model);
    expect(results.map(({ index }) => index).sort()).toEqual([0, 1, 2, 3]);
    for (const { index, document } of results) expect(document).toBe(DOCUMENTS[index]!);
    const scores = results.map(({ relevance_score }) => relevance_score);
    expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    const twins = results.filter(({ document }) => document === DOCUMENTS[1]);
    expect(twins.map(({ index }) => index)).toEqual([1, 3]);
  });
});

test("JSON lines come back whole, with all their keys", async () => {
  const path = join(temporaryDirectory("rerank"), "docs.jsonl");
  await Bun.write(path, '{"text":"a cat","id":7}\n"a dog"\n');
  const command = ["rerank", "-m", fixture("rerank-bert"), "-q", QUERY, "--json", "--file", path];
  const { stdout } = await mlxcel(command);
  const { results }: { results: { document: unknown }[] } = JSON.parse(stdout);
  const documents = results.map(({ document }) => document);
  expect(documents).toHaveLength(2);
  expect(documents).toContainEqual({ text: "a cat", id: 7 });
  expect(documents).toContainEqual("a dog");
});

test("--top-n keeps the best", async () => {
  const all = await ranked("rerank-bert", ["-d", ...DOCUMENTS]);
  const best = await ranked("rerank-bert", ["-d", ...DOCUMENTS, "--top-n", "2"]);
  expect(best.results).toEqual(all.results.slice(0, 2));
});

test("a file of more documents than one job holds is ranked as a whole", async () => {
  const lines = Array.from({ length: 300 }, (_, i) => `document ${i % 50} about a cat`);
  const path = join(temporaryDirectory("rerank"), "docs.txt");
  await Bun.write(path, lines.join("\n"));
  const { results, usage } = await ranked("rerank-bert", ["--file", path]);
  expect(results.map(({ index }) => index).sort((a, b) => a - b)).toEqual(lines.map((_, i) => i));
  for (const { index, document } of results) expect(document).toBe(lines[index]!);
  const few = await ranked("rerank-bert", ["-d", ...lines.slice(0, 50)]);
  expect(usage.total_tokens).toBe(6 * few.usage.total_tokens);
});

test("the table has a line per document, best first; an embedder's scores are called what they are", async () => {
  const command = ["-q", QUERY, "-d", ...DOCUMENTS];
  const judged = await mlxcel(["rerank", "-m", fixture("rerank-bert"), ...command]);
  expect({ code: judged.code, stderr: judged.stderr }).toEqual({ code: 0, stderr: "" });
  const [head, ...lines] = judged.stdout.trimEnd().split("\n");
  expect(head).toBe(" score  #  document");
  expect(lines).toHaveLength(4);
  for (const line of lines) expect(line).toMatch(/^ *\d\.\d{4}  \d  \S/);
  const cosines = await mlxcel(["rerank", "-m", fixture("bert-mean"), ...command]);
  expect(cosines.stderr).toBe("mlxcel: bert-mean is an embedder: scores are cosines\n");
});

test.each([
  [
    ["-m", fixture("rerank-bert"), "--instruction", "Judge"],
    2,
    /^mlxcel: --instruction means nothing to .*: leave it out\n$/,
  ],
  [["-m", fixture("rerank-bert"), "-d", " "], 2, /^mlxcel: document 2 behind -d has no text/],
  [["-m", fixture("rerank-bert"), "-q", "  "], 2, /-q takes a text/],
  [["-m", fixture("classifier-bert-2-labels")], 1, /2 labels/],
  [["-m", "./no-such-model"], 1, /no such directory/],
])("%j exits with one line", async (args, code, line) => {
  const exit = await mlxcel(["rerank", "-q", QUERY, "-d", "one", ...args]);
  expect({ code: exit.code, stdout: exit.stdout }).toEqual({ code, stdout: "" });
  expect(exit.stderr).toMatch(line);
  expect(exit.stderr.trimEnd().split("\n")).toHaveLength(1);
});

test.each(["rerank-bert", "bert-mean"])(
  "%s: a text that the model cannot take is named, be it the query or a document",
  async (name) => {
    const model = copyOfFixture(name);
    editJson<{ model: { vocab: Record<string, number> } }>(
      join(model, "tokenizer.json"),
      (tokenizer) => (tokenizer.model.vocab["zzzz"] = 5000),
    );
    const command = ["rerank", "-m", model, "-d", "one", "a zzzz"];
    for (const [query, subject] of [
      ["what zzzz is", "--query"],
      ["what", "document 2 behind -d"],
    ] as const) {
      const { stderr, code } = await mlxcel([...command, "-q", query]);
      expect({ stderr, code }).toEqual({
        stderr: `mlxcel: ${subject} has the token id 5000, which is outside of the vocabulary of 1000\n`,
        code: 2,
      });
    }
  },
);

test("a model with a vector per token says that it ranks by MaxSim", async () => {
  const command = ["rerank", "-m", fixture("colbert-bert"), "-q", QUERY, "-d", ...DOCUMENTS];
  const { stdout, stderr } = await mlxcel(command);
  expect(stdout.split("\n")[1]).toMatch(/^0\.\d{4} +\d/);
  expect(stderr).toContain("MaxSim, averaged over the query's tokens");
  expect((await mlxcel([...command, "--raw-scores"])).stderr).toContain("MaxSim, summed over");
});
