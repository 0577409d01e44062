/** Runs the real program on a reference checkpoint. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { z } from "zod";
import {
  copyOfFixture,
  editJson,
  fixture,
  temporaryDirectory,
} from "../../test/fixtures/fixtures.ts";
import { mlxcel } from "./testing/mlxcel.ts";

const MODEL = ["-m", fixture("bert-mean")];

const Envelope = z.strictObject({
  object: z.literal("list"),
  data: z.array(
    z.strictObject({
      object: z.literal("embedding"),
      index: z.number(),
      embedding: z.array(z.number()),
    }),
  ),
  model: z.literal("bert-mean"),
  usage: z.strictObject({ prompt_tokens: z.number(), total_tokens: z.number() }),
});

const Expected = z.object({
  cases: z.array(z.object({ input: z.unknown(), embedding: z.array(z.number()) })),
});

/** Characters that are within the model's limit, however they are split into tokens. */
const SHORT = 90;

async function reference(): Promise<{ text: string; embedding: number[] }[]> {
  const { cases } = Expected.parse(
    await Bun.file(join(fixture("bert-mean"), "expected.json")).json(),
  );
  return cases.flatMap(({ input, embedding }) =>
    typeof input === "string" && input.trim() !== "" && input.length < SHORT
      ? [{ text: input, embedding }]
      : [],
  );
}

async function vectors(args: readonly string[], stdin?: string): Promise<number[][]> {
  const { stdout, stderr, code } = await mlxcel(["embed", ...MODEL, "--json", ...args], stdin);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return Envelope.parse(JSON.parse(stdout)).data.map(({ embedding }) => embedding);
}

test("--json has the reference's vectors, in the form of /v1/embeddings", async () => {
  const cases = (await reference()).slice(0, 4);
  const given = await vectors(["-t", ...cases.map(({ text }) => text)]);
  expect(given).toHaveLength(cases.length);
  cases.forEach(({ embedding }, i) => {
    const difference = embedding.map((value, k) => Math.abs(value - (given[i]?.[k] ?? NaN)));
    expect(Math.max(...difference)).toBeLessThan(1e-5);
  });
});

test("texts of the command line come before those of the file, which may be JSON lines or stdin", async () => {
  const directory = temporaryDirectory("embed");
  const plain = join(directory, "texts.txt");
  const jsonl = join(directory, "texts.jsonl");
  await Bun.write(plain, "second\r\nthird\n");
  await Bun.write(jsonl, '"second"\n{"id":7,"text":"third"}\n');
  const expected = await vectors(["-t", "first", "second", "third"]);
  expect(await vectors(["-t", "first", "--file", plain])).toEqual(expected);
  expect(await vectors(["-t", "first", "--file", jsonl])).toEqual(expected);
  expect(await vectors(["-t", "first", "--file", "-"], "second\nthird")).toEqual(expected);
});

test("--npy writes what --json prints, to stdout or a file", async () => {
  const texts = ["-t", "one", "two", "three"];
  const path = join(temporaryDirectory("npy"), "vectors.npy");
  const { bytes, code } = await mlxcel(["embed", ...MODEL, ...texts, "--npy"]);
  const toFile = await mlxcel(["embed", ...MODEL, ...texts, "--npy", "-o", path]);
  expect([code, toFile.code, toFile.stdout]).toEqual([0, 0, ""]);
  expect(await Bun.file(path).bytes()).toEqual(bytes);
  const header = new TextDecoder("latin1").decode(bytes.subarray(0, 128));
  expect(header).toContain("'shape': (3, 64)");
  const floats = new Float32Array(bytes.slice(128).buffer);
  expect([...floats]).toEqual((await vectors(texts)).flat().map(Math.fround));
});

test("the table has a line per text and no colours in a pipe", async () => {
  const { stdout, code } = await mlxcel(["embed", ...MODEL, "-t", "hello\nworld", "-5 degrees"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^#  text +tokens  vector\n0  hello world .*…\n1  -5 degrees .*…\n\nbert-mean: 64 dimensions, \d+ tokens\n$/,
  );
});

test("MLXCEL_PROFILE=1: where the time went, on stderr, and the same answer", async () => {
  const args = ["embed", ...MODEL, "-t", "hello", "--json"];
  const [plain, profiled] = await Promise.all([
    mlxcel(args),
    mlxcel(args, undefined, { MLXCEL_PROFILE: "1" }),
  ]);
  expect(profiled.stdout).toBe(plain.stdout);
  for (const phase of ["tokenize", "graph", "read vectors"]) {
    expect(profiled.stderr).toMatch(new RegExp(`^${phase} .* \\d+\\.\\d{3}$`, "m"));
  }
});

test("a text that is too long is cut, and stderr says so", async () => {
  const { stderr, code } = await mlxcel(["embed", ...MODEL, "-t", "word ".repeat(5000), "--json"]);
  expect(code).toBe(0);
  expect(stderr).toMatch(/^mlxcel: 1 of the texts cut to the limit of \d+ tokens\n$/);
});

test.each([
  [
    ["-t", "a", "--dimensions", "65"],
    2,
    /^mlxcel: --dimensions must be an integer from 1 to 64\n$/,
  ],
  [["-t", "a", "--prompt-name", "nope"], 2, /^mlxcel: --prompt-name "nope" is unknown/],
  [["-t", "a", "", "b"], 2, /^mlxcel: text 2 behind -t is an empty string\n$/],
  [["--file", "no-such-file.txt"], 2, /--file no-such-file.txt: no such file/],
  [["-t", "a", "-m", "./no-such-model"], 1, /no such directory/],
  [["-t", "a", "-m", fixture("rerank-bert")], 1, /not an embedding model; mlxcel rerank/],
  [
    ["-t", "a", "-m", fixture("classifier-bert-2-labels")],
    1,
    /is a classifier of 2 labels, neither an embedding model nor a reranker/,
  ],
])("%j exits with one line", async (args, code, line) => {
  const exit = await mlxcel(["embed", ...MODEL, ...args]);
  expect({ code: exit.code, stdout: exit.stdout }).toEqual({ code, stdout: "" });
  expect(exit.stderr).toMatch(line);
  expect(exit.stderr.trimEnd().split("\n")).toHaveLength(1);
});

test("stdin that is no UTF-8 is refused by its line", async () => {
  const bytes = Uint8Array.of(0x61, 0x0a, 0x62, 0xe9, 0x0a);
  const { code, stderr } = await mlxcel(["embed", ...MODEL, "--file", "-"], bytes);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: "mlxcel: stdin line 2 is not valid UTF-8; save the file as UTF-8\n",
  });
});

test("a text of a long file that the model cannot take is named by its line", async () => {
  const model = copyOfFixture("bert-mean");
  editJson<{ model: { vocab: Record<string, number> } }>(
    join(model, "tokenizer.json"),
    (tokenizer) => (tokenizer.model.vocab["zzzz"] = 5000),
  );
  const path = join(temporaryDirectory("embed"), "texts.jsonl");
  const lines = Array.from({ length: 600 }, (_, i) => (i === 580 ? '{"text":"zzzz"}' : '"a"'));
  await Bun.write(path, `\n${lines.join("\n")}`);
  const { stderr, code } = await mlxcel(["embed", "-m", model, "-t", "a", "--file", path]);
  expect({ stderr, code }).toEqual({
    stderr: `mlxcel: ${path} line 582 has the token id 5000, which is outside of the vocabulary of 1000\n`,
    code: 2,
  });
});

test("a model with a vector per token: rows in every form of the answer", async () => {
  const command = ["embed", "-m", fixture("colbert-bert"), "--prompt-name", "document"];
  const texts = ["-t", "eggs, boiled", "the old fox"];
  const json = await mlxcel([...command, ...texts, "--json"]);
  const Rows = z.object({ data: z.array(z.object({ embedding: z.array(z.array(z.number())) })) });
  const items = Rows.parse(JSON.parse(json.stdout)).data.map(({ embedding }) => embedding);
  expect(items).toHaveLength(2);

  const table = await mlxcel([...command, ...texts]);
  for (const { length } of items) expect(table.stdout).toContain(`(${length} rows)`);

  const npy = await mlxcel([...command, ...texts, "--npy"]);
  const rows = items.flat();
  expect(new TextDecoder("latin1").decode(npy.bytes.subarray(0, 128))).toContain(
    `'shape': (${rows.length}, 32)`,
  );
  const floats = new Float32Array(npy.bytes.slice(128).buffer);
  expect([...floats]).toEqual(rows.flat().map(Math.fround));
  expect(npy.stderr).toContain(`${rows.length} vectors, text after text`);
});

test("--cpu-precision bf16 moves vectors a little, and is refused where there are no kernels for it", async () => {
  const { text, embedding } = (await reference())[0]!;
  const flags = ["--device", "cpu", "--cpu-precision", "bf16"];
  const args = ["embed", ...MODEL, "--json", ...flags, "-t", text];
  const refused = await mlxcel(args, undefined, { MLXCEL_KERNELS: "off" });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("--cpu-precision bf16 needs a CPU with AVX512-BF16");
  const { stdout, stderr, code } = await mlxcel(args);
  if (code !== 0) {
    expect(stderr).toContain("--cpu-precision bf16 needs a CPU with AVX512-BF16");
    return;
  }
  const [given] = Envelope.parse(JSON.parse(stdout)).data;
  const difference = Math.max(
    ...embedding.map((value, i) => Math.abs(value - (given?.embedding[i] ?? NaN))),
  );
  expect(difference).toBeGreaterThan(1e-5);
  expect(difference).toBeLessThan(0.02);
});
