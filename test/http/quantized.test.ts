import { expect, setDefaultTimeout, test } from "bun:test";
import { fixture, referenceCase } from "../checkpoints.ts";
import { startServer } from "../server.ts";
import { embedOne, expectVector } from "./answers.ts";

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

test("weights of full precision are not worth a line", async () => {
  await using server = await startServer(["--embedding-model", fixture("bert-mean")]);
  expect(server.stderr()).not.toContain("weights");
});
