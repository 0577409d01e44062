import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { demoModelStore } from "./demo-model-store.ts";

const env = { HOME: "/home" };
const store = "/home/.cache/mlxcel/models";

async function wants(...args: string[]): Promise<boolean> {
  return (await demoModelStore(args, env)) !== undefined;
}

test.each([[[]], [["serve"]], [["--port", "1"]], [["embed", "-t", "some text"]], [["rerank"]]])(
  "%j runs on the demo model",
  async (args) => {
    expect(await demoModelStore(args, env)).toBe(store);
  },
);

test("a relative store starts from the folder that the user stands in, as for the server", async () => {
  expect(await demoModelStore(["--models-dir", "here"], env)).toBe(resolve("here"));
  expect(await demoModelStore(["--models-dir=here"], env)).toBe(resolve("here"));
  expect(await demoModelStore([], { ...env, LLAMA_ARG_MODELS_DIR: "/s" })).toBe("/s");
});

test.each(["-m", "--model", "-hf", "-hfr", "--hf-repo", "--embedding-model", "--reranker-model"])(
  "a model named with %s is enough",
  async (flag) => {
    expect(await wants(flag, "some/model")).toBe(false);
    expect(await wants("serve", `${flag}=some/model`)).toBe(false);
  },
);

test.each(["MLXCEL_MODEL", "LLAMA_ARG_HF_REPO", "MLXCEL_RERANKER_MODEL"])(
  "a model named with %s is enough",
  async (name) => {
    expect(await demoModelStore([], { ...env, [name]: "some/model" })).toBeUndefined();
  },
);

test("nothing is fetched offline", async () => {
  expect(await wants("--offline")).toBe(false);
  expect(await wants("--offline=off")).toBe(true);
  for (const name of ["MLXCEL_OFFLINE", "LLAMA_ARG_OFFLINE"]) {
    expect(await demoModelStore([], { ...env, [name]: "1" })).toBeUndefined();
    expect(await demoModelStore([], { ...env, [name]: "0" })).toBe(store);
    expect(await demoModelStore(["embed", "-t", "a"], { ...env, [name]: "1" })).toBeUndefined();
  }
});

test.each([["doctor"], ["help"], ["version"], ["--help"], ["-h"], ["--version"], ["--nonsense"]])(
  "%s needs no model",
  async (word) => {
    expect(await wants(word)).toBe(false);
  },
);
