import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { localStore } from "./places.ts";
import { findModel, type FindOptions, resolveModel } from "./resolve.ts";

let root = "";

function checkpoint(...path: string[]): string {
  const directory = join(root, ...path);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "config.json"), "{}");
  writeFileSync(join(directory, "model.safetensors"), "");
  return directory;
}

/** Without the network. */
const resolve = (name: string, options: FindOptions) =>
  resolveModel(name, { ...options, offline: true, listener: { remark() {}, progress() {} } });

function cached(hub: string, repository: string, commit: string): string {
  const base = join(hub, `models--${repository.replace("/", "--")}`);
  checkpoint(base, "snapshots", "other");
  const snapshot = checkpoint(base, "snapshots", commit);
  mkdirSync(join(root, base, "refs"));
  writeFileSync(join(root, base, "refs", "main"), `${commit}\n`);
  return snapshot;
}

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "mlxcel-hub-"));
});

afterAll(() => rmSync(root, { recursive: true }));

describe("a path", () => {
  test("is taken as it is; its last part is the id", () => {
    const directory = checkpoint("here", "model-a");
    expect(findModel(directory, { env: {} })).toEqual({
      directory,
      id: "model-a",
      name: directory,
    });
    expect(findModel(`${directory}/`, { env: {} })?.id).toBe("model-a");
    expect(findModel(`${directory}/../model-a`, { env: {} })).toMatchObject({
      directory,
      id: "model-a",
    });
  });

  test("that is missing, a file, or no checkpoint: one line says so", () => {
    const file = join(checkpoint("there"), "config.json");
    mkdirSync(join(root, "bare"));
    expect(() => findModel(join(root, "absent"), { env: {} })).toThrow("absent: no such directory");
    expect(() => findModel("./absent", { env: {} })).toThrow("model ./absent: no such directory");
    expect(() => findModel(file, { env: {} })).toThrow("is a file; name a .gguf file");
    expect(() => findModel(join(root, "bare"), { env: {} })).toThrow("no config.json");
  });

  test("may be a GGUF file, or a directory with a single one", () => {
    const directory = join(root, "gguf");
    const file = join(directory, "tiny-Q8_0.gguf");
    mkdirSync(directory);
    writeFileSync(file, "GGUF");
    const found = { directory: file, id: "tiny-Q8_0", name: file };
    expect(findModel(file, { env: {} })).toEqual(found);
    expect(findModel(directory, { env: {} })).toEqual({ ...found, id: "gguf", name: directory });
    writeFileSync(join(directory, "tiny-F16.gguf"), "GGUF");
    expect(() => findModel(directory, { env: {} })).toThrow(
      "holds several GGUF files; name one of tiny-F16.gguf, tiny-Q8_0.gguf",
    );
    expect(() => findModel("missing.gguf", { env: {} })).toThrow("no such directory or file");
  });

  test("may hold its config.json in a folder that modules.json names", () => {
    const directory = join(root, "folders");
    mkdirSync(directory);
    writeFileSync(join(directory, "modules.json"), "[]");
    expect(findModel(directory, { env: {} })?.directory).toBe(directory);
  });

  test.skipIf(process.getuid?.() === 0)("without permission to read it says so", () => {
    const directory = checkpoint("locked");
    chmodSync(directory, 0o000);
    expect(() => findModel(directory, { env: {} })).toThrow(
      /locked: its directory cannot be read: EACCES/,
    );
    chmodSync(directory, 0o700);
  });
});

describe("a repository name", () => {
  test("is found in the store before the Hugging Face cache", () => {
    const env = { HF_HUB_CACHE: join(root, "hub") };
    const snapshot = cached("hub", "owner/both", "c0ffee");
    const modelsDir = join(root, "store");
    expect(findModel("owner/both", { modelsDir, env })).toEqual({
      directory: snapshot,
      id: "both",
      name: "owner/both",
    });
    const stored = checkpoint("store", "owner", "both");
    expect(findModel("owner/both", { modelsDir, env })?.directory).toBe(stored);
  });

  test("the cache is where huggingface_hub's own variables say", () => {
    const options = (env: Record<string, string>) => ({ modelsDir: join(root, "no-store"), env });
    const inHome = cached("hf/hub", "o/in-home", "1");
    const inXdg = cached("xdg/huggingface/hub", "o/in-xdg", "1");
    const inUserHome = cached(".cache/huggingface/hub", "o/in-user-home", "1");
    expect(findModel("o/in-home", options({ HF_HOME: join(root, "hf") }))?.directory).toBe(inHome);
    expect(findModel("o/in-xdg", options({ XDG_CACHE_HOME: join(root, "xdg") }))?.directory).toBe(
      inXdg,
    );
    expect(findModel("o/in-user-home", options({ HOME: root }))?.directory).toBe(inUserHome);
  });

  test("a snapshot counts only if the branch points to it, or if it is the commit asked for", () => {
    const snapshot = checkpoint("hub2", "models--o--stale", "snapshots", "c0ffee");
    const env = { HF_HUB_CACHE: join(root, "hub2"), HOME: root };
    expect(findModel("o/stale", { env })).toBeUndefined();
    expect(findModel("o/stale", { env, revision: "c0ffee" })?.directory).toBe(snapshot);
  });

  test("a snapshot without all of its weights does not count", () => {
    const snapshot = cached("hub-parts", "o/parts", "1");
    const env = { HF_HUB_CACHE: join(root, "hub-parts"), HOME: root };
    rmSync(join(snapshot, "model.safetensors"));
    expect(findModel("o/parts", { env })).toBeUndefined();
    writeFileSync(join(snapshot, "model-00001-of-00002.safetensors"), "");
    expect(findModel("o/parts", { env })).toBeUndefined();
    writeFileSync(join(snapshot, "model-00002-of-00002.safetensors"), "");
    expect(findModel("o/parts", { env })?.directory).toBe(snapshot);
  });

  test("found nowhere: the line says where it looked and what to do", async () => {
    const env = { HF_HUB_CACHE: join(root, "hub3") };
    const failure = await resolve("owner/absent", { modelsDir: join(root, "store3"), env }).catch(
      String,
    );
    for (const part of [join(root, "store3"), join(root, "hub3"), "leave --offline out"]) {
      expect(failure).toContain(part);
    }
  });

  test("a name without an owner is not downloaded", async () => {
    const options = { modelsDir: root, env: { HOME: root, HF_ENDPOINT: "http://127.0.0.1:1" } };
    const listener = { remark() {}, progress() {} };
    await expect(resolveModel("absent", { ...options, offline: false, listener })).rejects.toThrow(
      "only names of the form <owner>/<name> are downloaded",
    );
  });

  test.each(["MiniLM", "minilm", "other/MiniLM"])(
    "%s: one of the same last part in the store or the cache is suggested",
    async (name) => {
      const modelsDir = join(root, "store5");
      checkpoint("store5", "st", "MiniLM");
      await expect(resolve(name, { modelsDir, env: { HOME: root } })).rejects.toThrow(
        "did you mean st/MiniLM?",
      );
      const hub = `hub-${name.replace("/", "-")}`;
      cached(hub, "hf/MiniLM", "1");
      const env = { HF_HUB_CACHE: join(root, hub) };
      await expect(resolve(name, { modelsDir: join(root, "no-store"), env })).rejects.toThrow(
        "did you mean hf/MiniLM?",
      );
    },
  );

  test("nothing is suggested where nothing is alike", async () => {
    const search = resolve("owner/absent", { modelsDir: root, env: { HOME: root } });
    await expect(search).rejects.toThrow("not found:");
  });

  test("may end in a slash", () => {
    const modelsDir = join(root, "store6");
    const directory = checkpoint("store6", "owner", "slashed");
    expect(findModel("owner/slashed/", { modelsDir, env: {} })).toEqual({
      directory,
      id: "slashed",
      name: "owner/slashed",
    });
  });

  test("a GGUF file is a model by its path, in a directory, in the store and in the cache", () => {
    const modelsDir = join(root, "store7");
    const file = (...path: string[]) => {
      const directory = join(root, ...path.slice(0, -1));
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(root, ...path), "GGUF");
      return join(root, ...path);
    };
    const stored = file("store7", "o", "gguf", "m-Q8_0.gguf");
    const env = { HF_HUB_CACHE: join(root, "hub7") };
    expect(findModel(stored, { env })).toMatchObject({ directory: stored, id: "m-Q8_0" });
    expect(findModel("o/gguf", { modelsDir, env })?.directory).toBe(stored);
    expect(findModel("o/gguf:q8_0", { modelsDir, env })).toMatchObject({
      directory: stored,
      id: "gguf",
      name: "o/gguf:q8_0",
    });
    expect(findModel("o/gguf:F16", { modelsDir, env })).toBeUndefined();
    const snapshot = file("hub7", "models--o--cached", "snapshots", "1", "m-F16.gguf");
    mkdirSync(join(root, "hub7/models--o--cached/refs"));
    writeFileSync(join(root, "hub7/models--o--cached/refs/main"), "1");
    expect(findModel("o/cached:F16", { modelsDir, env })?.directory).toBe(snapshot);
  });

  test.each(["model.gguf", "dir/model.gguf", "./dir/model.Q4_K_M.GGUF", "dir/model.safetensors"])(
    "%s can only be a path",
    (name) => {
      expect(() => findModel(name, { modelsDir: root, env: {} })).toThrow(
        `model ${name}: no such directory or file`,
      );
    },
  );

  test("cannot leave the store", () => {
    checkpoint("secret");
    expect(() => findModel("../secret", { modelsDir: join(root, "store4"), env: {} })).toThrow(
      "no such directory",
    );
    expect(() => findModel("a/../../secret", { modelsDir: join(root, "store4"), env: {} })).toThrow(
      "no such directory",
    );
  });
});

test("the store: the flag, else the user's cache directory", () => {
  expect(localStore({ modelsDir: "/models", env: {} })).toBe("/models");
  expect(localStore({ env: { XDG_CACHE_HOME: "/x" } })).toBe("/x/mlxcel/models");
  expect(localStore({ env: { HOME: "/h" } })).toBe("/h/.cache/mlxcel/models");
});
