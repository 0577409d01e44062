/** Single GGUF files through the server. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { truncateSync } from "node:fs";
import { CheckpointCopy, expected } from "../checkpoints.ts";
import { ggufFixture } from "../gguf.ts";
import { run, startServer } from "../server.ts";
import { embed, expectVectors } from "./answers.ts";

setDefaultTimeout(60_000);

describe.each([
  ["bert-mean-gguf-q8_0", "Q8_0"],
  ["qwen3-embed-gguf-f16", "F16"],
])("%s", (name, stored) => {
  test("gives the reference's vectors and says how it is stored", async () => {
    const file = ggufFixture(name);
    await using server = await startServer(["-m", file]);
    const cases = expected(name)
      .cases.filter(({ input }) => typeof input === "string")
      .slice(0, 9);
    const { vectors } = await embed(server, { input: cases.map(({ input }) => input) });
    expectVectors(
      vectors,
      cases.map(({ embedding }) => embedding),
    );
    const { models } = JSON.parse(await (await server.get("/props")).text());
    expect(models).toMatchObject([{ id: "model", stored_dtype: stored, normalization: "l2" }]);
    expect(server.stdout()).toContain(`model (${models[0].family}, ${stored})`);
  });
});

test("a file that was cut short stops the start with a line that says so", async () => {
  const copy = new CheckpointCopy("bert-mean-gguf-q8_0");
  truncateSync(copy.path("model.gguf"), 150_000);
  const { exitCode, stderr } = await run(["serve", "-m", copy.directory]);
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/^.*model\.gguf is damaged or incomplete: tensor "\S+" ends at byte.*\n$/);
});
