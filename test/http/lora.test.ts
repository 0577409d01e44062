import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CheckpointCopy, fixture, referenceCase } from "../checkpoints.ts";
import { run, startServer } from "../server.ts";
import { embedOne, expectVector } from "./answers.ts";

setDefaultTimeout(60_000);

const NAME = "bert-lora-patterns";
/** Holds fixtures/bert-mean, which the adapter names as its base. */
const STORE = mkdtempSync(join(tmpdir(), "mlxcel-lora-"));
symlinkSync(dirname(fixture(NAME)), join(STORE, "fixtures"));
afterAll(() => rmSync(STORE, { recursive: true }));

test("an adapter answers as its base with the adapter does, and the log says that it was merged", async () => {
  const { input, embedding } = referenceCase(NAME, "short");
  const model = ["--offline", "--models-dir", STORE, "--embedding-model", fixture(NAME)];
  await using server = await startServer(model);
  expectVector(await embedOne(server, String(input)), embedding);
  const lines = server
    .stderr()
    .split("\n")
    .filter((line) => line.includes("merged"));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(join(STORE, "fixtures/bert-mean"));
});

test.each([
  [
    "someone/base-model",
    /adapter of someone\/base-model: .* has it; unset HF_HUB_OFFLINE to download it$/,
  ],
  ["/nowhere/at all", /adapter of \/nowhere\/at all: .* no such directory or file$/],
])("without its base %s a start is refused with the next step", async (base, message) => {
  const copy = new CheckpointCopy(NAME).set("adapter_config.json", {
    base_model_name_or_path: base,
  });
  const arguments_ = [
    "serve",
    "--port",
    "0",
    "--offline",
    "--models-dir",
    STORE,
    "-m",
    copy.directory,
  ];
  const { exitCode, stderr } = await run(arguments_);
  expect(exitCode).toBe(1);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  expect(stderr.trimEnd()).toMatch(message);
});
