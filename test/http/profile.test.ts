import { expect, setDefaultTimeout, test } from "bun:test";
import { fixture } from "../checkpoints.ts";
import { startServer } from "../server.ts";
import { embed } from "./answers.ts";

setDefaultTimeout(60_000);

const MODEL = ["--embedding-model", fixture("bert-cls-dense")];
const PHASES = ["read", "validate", "wait", "tokenize", "graph", "eval \\w+", "pool", "render"];

test("MLXCEL_PROFILE=1 prints what the time went into, and changes no number", async () => {
  const body = { input: ["a text", "another text of more words"] };
  await using plain = await startServer(MODEL);
  const { vectors: expected } = await embed(plain, body);
  await using server = await startServer(MODEL, { env: { MLXCEL_PROFILE: "1" } });
  for (let request = 0; request < 3; request++) {
    const { vectors } = await embed(server, body);
    expect(vectors).toEqual(expected);
  }
  expect(await server.stop("SIGINT")).toBe(0);
  const report = server.stderr();
  for (const phase of PHASES)
    expect(report).toMatch(new RegExp(`^${phase} .* \\d+\\.\\d{3}$`, "m"));
  expect(report).toMatch(/^validate .* 3 +\d+\.\d{3}$/m);
  const shares = [...report.matchAll(/ (\d+\.\d) %/g)].map(([, share]) => Number(share));
  const total = shares.reduce((sum, share) => sum + share, 0);
  expect(Math.abs(total - 100)).toBeLessThan(0.05 * shares.length + 0.01);
  expect(await plain.stop()).toBe(0);
  expect(plain.stderr()).not.toContain("ms each");
});
