/** What the executable does for a user who has nothing else: no Node, no Python, no Bun, an empty home. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { z } from "zod";
import { many, MODEL, one } from "../clients/reference.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { rerankCase, rerankReference } from "../fixtures/rerank-reference.ts";
import { expectVector, expectVectors } from "../http/answers.ts";
import { startServer } from "../server.ts";
import { builtExecutable, User } from "./user.ts";

let user: User;
beforeAll(async () => {
  await builtExecutable();
  user = new User();
});
afterAll(() => user[Symbol.dispose]());

const Vectors = z.object({ data: z.array(z.object({ embedding: z.array(z.number()) })) });
const Scores = z.object({
  results: z.array(z.object({ index: z.number(), relevance_score: z.number() })),
});

const EMBED = ["embed", "-m", fixture(MODEL), "--json", "-t", String(one.input)];

test("what needs no native library unpacks none", async () => {
  const quick = [
    ["--version"],
    ["--help"],
    ["embed", "--help"],
    ["bench", "--help"],
    ["licenses"],
    ["completions", "zsh"],
  ];
  for (const args of quick) {
    expect((await user.run(args)).exitCode).toBe(0);
  }
  expect((await user.run(["--version"])).stdout).toMatch(
    /^mlxcel \d+\.\d+\.\d+\S* \(MLX \d\S+, mlx-c \d\S+, Bun \d\S+\)\n$/,
  );
  expect(readdirSync(user.home)).toEqual([]);
});

test("licenses prints those of everything inside", async () => {
  const { stdout } = await user.run(["licenses"]);
  for (const part of ["mlxcel", "bun", "mlx", "mlx-c", "openblas", "zod", "sharp", "libvips"]) {
    expect(stdout).toMatch(new RegExp(`^  ${part} \\d\\S+ +\\S`, "m"));
    expect(stdout).toMatch(new RegExp(`^=+\\n${part} \\d\\S+\\n=+\\n\\n\\S`, "m"));
  }
  expect(stdout).toContain("GCC RUNTIME LIBRARY EXCEPTION");
});

test("embed prints the reference's vector", async () => {
  const { stdout, stderr, exitCode } = await user.run(EMBED);
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  expectVector(Vectors.parse(JSON.parse(stdout)).data[0]?.embedding ?? [], one.embedding);
});

test("rerank prints the reference's scores", async () => {
  const { cases } = rerankReference("rerank-bert", z.object({ cases: z.array(rerankCase) }));
  const [first] = cases;
  if (first === undefined) throw new Error("no reference case");
  const { query, document } = first.input;
  const { stdout, exitCode } = await user.run([
    ...["rerank", "-m", fixture("rerank-bert"), "-q", query, "-d", document, "--json"],
  ]);
  expect(exitCode).toBe(0);
  const [result] = Scores.parse(JSON.parse(stdout)).results;
  expect(Math.abs((result?.relevance_score ?? Number.NaN) - first.score)).toBeLessThan(1e-5);
});

test("doctor finds the unpacked library and decodes an image", async () => {
  const { stdout, exitCode } = await user.run(["doctor", "--json"]);
  expect(exitCode).toBe(0);
  const report: unknown = JSON.parse(stdout);
  expect(report).toMatchObject({
    nativeLibrary: expect.stringMatching(
      /^\/\S+\/home\/\.cache\/mlxcel\/native-[0-9a-f]{16}\/libmlxc\.so$/,
    ),
    images: { libvips: expect.stringMatching(/^\d+\.\d+\.\d+$/) },
  });
});

describe("serve", () => {
  test("answers the openai client with the reference's vectors, and ranks", async () => {
    await using server = await startServer(["--embedding-model", fixture(MODEL), "--rerank"], {
      executable: user.executable,
      env: user.env,
    });
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
    const { data } = await client.embeddings.create({ model: MODEL, input: many.texts });
    expectVectors(
      data.map(({ embedding }) => embedding),
      many.vectors,
    );
    // Bodies and answers of this size go through the codec worker.
    const long = await client.embeddings.create({
      model: MODEL,
      input: Array.from({ length: 2000 }, () => many.texts).flat(),
    });
    expect(long.data).toHaveLength(2000 * many.texts.length);
    const answer = await server.post("/v1/rerank", { query: "a", documents: ["a", "b"] });
    expect(Scores.parse(await answer.json()).results).toHaveLength(2);
    expect(await server.stop()).toBe(0);
  });
});

test("bench starts a server of its own", async () => {
  const { exitCode, stdout, stderr } = await user.run([
    ...["bench", "-m", fixture(MODEL), "-s", "a1", "--rounds", "1", "--seconds", "0.1"],
  ]);
  expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(stdout).toContain("/s");
});

describe("files in the folder that the user stands in change nothing", () => {
  const hostile = {
    ".env":
      "HOSTILE=1\nMLXCEL_MODEL=/nowhere\nMLXCEL_DEVICE=nonsense\nBUN_CONFIG_PRELOAD=./evil.ts\n",
    "bunfig.toml": 'preload = ["./evil.ts"]\n[run]\nbun = false\n',
    "tsconfig.json": '{ "compilerOptions": { "paths": { "*": ["./evil.ts"] }, "baseUrl": "." } }',
    "package.json": '{ "type": "commonjs", "imports": { "#*": "./evil.ts" }, "main": "./evil.ts" }',
    "evil.ts": 'throw new Error("hostile");',
  };

  test("the program", async () => {
    using victim = new User();
    const { stdout } = await victim.run(EMBED);
    for (const [name, content] of Object.entries(hostile)) {
      writeFileSync(join(victim.work, name), content);
    }
    expect(await victim.run(EMBED)).toEqual({ stdout, stderr: "", exitCode: 0 });
    // Bun itself, which the executable is made of, does read them: they are as hostile as they look.
    const bun = await victim.run(["-e", "console.log(1)"], { BUN_BE_BUN: "1" });
    expect(bun.stderr).toContain("hostile");
  });
});
