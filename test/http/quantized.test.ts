import { expect, setDefaultTimeout, test } from "bun:test";
import { reasonOf } from "../../src/native/thrown.ts";
import { fixture, referenceCase } from "../checkpoints.ts";
import { startServer } from "../server.ts";
import { embedOne, expectVector, okJson } from "./answers.ts";

setDefaultTimeout(60_000);

const NAME = "bert-mean-mlx-4bit";
const { input, embedding } = referenceCase(NAME, "medium");

test.each([
  [{}, /4-bit weights de-quantised once/],
  [{ MLXCEL_CPU_DEQUANTIZE: "on" }, /4-bit weights de-quantised once/],
  [{ MLXCEL_CPU_DEQUANTIZE: "off" }, /4-bit weights stay quantised/],
] as const)(
  "a server with %j says in one line what it does with quantised weights",
  async (env, line) => {
    const model = ["--embedding-model", fixture(NAME), "--device", "cpu"];
    await using server = await startServer(model, { env });
    expectVector(await embedOne(server, String(input)), embedding);
    const lines = server
      .stderr()
      .split("\n")
      .filter((text) => text.includes("quantised"));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(line);
    const info: unknown = await (await server.get("/info")).json();
    expect(info).toMatchObject({ model_dtype: "4-bit" });
  },
);

test.each([
  ["bert-mean", {}],
  [NAME, {}],
  [NAME, { MLXCEL_CPU_DEQUANTIZE: "off" }],
] as const)("the start and /props tell of bf16 products: %s with %j", async (name, env) => {
  const flags = ["--embedding-model", fixture(name), "--device", "cpu"];
  const started = await startServer([...flags, "--cpu-precision", "bf16"], { env }).catch(reasonOf);
  if (typeof started === "string") {
    expect(started).toContain("--cpu-precision bf16 needs a CPU with AVX512-BF16");
    return;
  }
  await using server = started;
  expect(server.stdout()).toMatch(/^ +device +cpu, bf16 products$/m);
  expect(await okJson(await server.get("/props"))).toMatchObject({
    models: [{ cpu_precision: "bf16" }],
  });
  const { input: text, embedding: exact } = referenceCase(name, "medium");
  const vector = await embedOne(server, String(text));
  const difference = Math.max(...exact.map((value, i) => Math.abs(value - vector[i]!)));
  expect(difference).toBeWithin(1e-5, 0.05);
});

test("weights of full precision are not worth a line", async () => {
  await using server = await startServer(["--embedding-model", fixture("bert-mean")]);
  expect(server.stderr()).not.toContain("weights");
});
