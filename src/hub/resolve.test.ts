import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { localStore, resolveModel } from "./resolve.ts";

let root = "";

function checkpoint(...path: string[]): string {
  const directory = join(root, ...path);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "config.json"), "{}");
  return directory;
}

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
    expect(resolveModel(directory, { env: {} })).toEqual({
      directory,
      id: "model-a",
      name: directory,
    });
    expect(resolveModel(`${directory}/`, { env: {} }).id).toBe("model-a");
    expect(resolveModel(`${directory}/../model-a`, { env: {} })).toMatchObject({
      directory,
      id: "model-a",
    });
  });

  test("that is missing, a file, or no checkpoint: one line says so", () => {
    const file = join(checkpoint("there"), "config.json");
    mkdirSync(join(root, "bare"));
    expect(() => resolveModel(join(root, "absent"), { env: {} })).toThrow(
      "absent: no such directory",
    );
    expect(() => resolveModel("./absent", { env: {} })).toThrow(
      "model ./absent: no such directory",
    );
    expect(() => resolveModel(file, { env: {} })).toThrow("is a file; name a .gguf file");
    expect(() => resolveModel(join(root, "bare"), { env: {} })).toThrow("no config.json");
  });

  test("may be a GGUF file, or a directory with a single one", () => {
    const directory = join(root, "gguf");
    const file = join(directory, "tiny-Q8_0.gguf");
    mkdirSync(directory);
    writeFileSync(file, "GGUF");
    const found = { directory: file, id: "tiny-Q8_0", name: file };
    expect(resolveModel(file, { env: {} })).toEqual(found);
    expect(resolveModel(directory, { env: {} })).toEqual({ ...found, id: "gguf", name: directory });
    writeFileSync(join(directory, "tiny-F16.gguf"), "GGUF");
    expect(() => resolveModel(directory, { env: {} })).toThrow(
      "holds several GGUF files; name one of tiny-F16.gguf, tiny-Q8_0.gguf",
    );
    expect(() => resolveModel("missing.gguf", { env: {} })).toThrow("no such directory or file");
  });

  test("may hold its config.json in a folder that modules.json names", () => {
    const directory = join(root, "folders");
    mkdirSync(directory);
    writeFileSync(join(directory, "modules.json"), "[]");
    expect(resolveModel(directory, { env: {} }).directory).toBe(directory);
  });

  test.skipIf(process.getuid?.() === 0)("without permission to read it says so", () => {
    const directory = checkpoint("locked");
    chmodSync(directory, 0o000);
    expect(() => resolveModel(directory, { env: {} })).toThrow(
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
    expect(resolveModel("owner/both", { modelsDir, env })).toEqual({
      directory: snapshot,
      id: "both",
      name: "owner/both",
    });
    const stored = checkpoint("store", "owner", "both");
    expect(resolveModel("owner/both", { modelsDir, env }).directory).toBe(stored);
  });

  test("the cache is where huggingface_hub's own variables say", () => {
    const options = (env: Record<string, string>) => ({ modelsDir: join(root, "no-store"), env });
    const inHome = cached("hf/hub", "o/in-home", "1");
    const inXdg = cached("xdg/huggingface/hub", "o/in-xdg", "1");
    const inUserHome = cached(".cache/huggingface/hub", "o/in-user-home", "1");
    expect(resolveModel("o/in-home", options({ HF_HOME: join(root, "hf") })).directory).toBe(
      inHome,
    );
    expect(resolveModel("o/in-xdg", options({ XDG_CACHE_HOME: join(root, "xdg") })).directory).toBe(
      inXdg,
    );
    expect(resolveModel("o/in-user-home", options({ HOME: root })).directory).toBe(inUserHome);
  });

  test("a snapshot counts only if the branch main points to it", () => {
    checkpoint("hub2", "models--o--stale", "snapshots", "1");
    expect(() =>
      resolveModel("o/stale", { env: { HF_HUB_CACHE: join(root, "hub2"), HOME: root } }),
    ).toThrow("not found");
  });

  test("found nowhere: the line says where it looked and what to do", () => {
    const env = { HF_HUB_CACHE: join(root, "hub3") };
    const search = () => resolveModel("owner/absent", { modelsDir: join(root, "store3"), env });
    for (const part of [
      "owner/absent",
      join(root, "store3"),
      join(root, "hub3"),
      "does not download",
      "-m",
    ]) {
      expect(search).toThrow(part);
    }
  });

  test("found nowhere: the line says how to get it to where it is looked for", () => {
    const modelsDir = join(root, "store3");
    const search = (name: string) => () =>
      resolveModel(name, { modelsDir, env: { HF_HUB_CACHE: join(root, "hub3") } });
    expect(search("owner/absent")).toThrow(
      `hf download owner/absent --local-dir ${join(modelsDir, "owner/absent")}`,
    );
    expect(search("absent")).toThrow("hf download OWNER/absent");
  });

  test.each(["MiniLM", "minilm", "other/MiniLM"])(
    "%s: one of the same last part in the store or the cache is suggested",
    (name) => {
      const modelsDir = join(root, "store5");
      checkpoint("store5", "st", "MiniLM");
      const search = (options: { modelsDir: string; env: Record<string, string> }) => () =>
        resolveModel(name, options);
      expect(search({ modelsDir, env: { HOME: root } })).toThrow("did you mean st/MiniLM?");
      const hub = `hub-${name.replace("/", "-")}`;
      cached(hub, "hf/MiniLM", "1");
      const env = { HF_HUB_CACHE: join(root, hub) };
      expect(search({ modelsDir: join(root, "no-store"), env })).toThrow("did you mean hf/MiniLM?");
    },
  );

  test("nothing is suggested where nothing is alike", () => {
    const search = () => resolveModel("owner/absent", { modelsDir: root, env: { HOME: root } });
    expect(search).toThrow("not found:");
  });

  test("may end in a slash", () => {
    const modelsDir = join(root, "store6");
    const directory = checkpoint("store6", "owner", "slashed");
    expect(resolveModel("owner/slashed/", { modelsDir, env: {} })).toEqual({
      directory,
      id: "slashed",
      name: "owner/slashed",
    });
  });

  test("may ask for a quantisation, which is refused", () => {
    const name = "owner/repo-GGUF:Q8_0";
    expect(() => resolveModel(name, { modelsDir: root, env: {} })).toThrow(
      `model ${name}: quantisations are not looked up`,
    );
  });

  test("cannot leave the store", () => {
    checkpoint("secret");
    expect(() => resolveModel("../secret", { modelsDir: join(root, "store4"), env: {} })).toThrow(
      "no such directory or file",
    );
    expect(() =>
      resolveModel("a/../../secret", { modelsDir: join(root, "store4"), env: {} }),
    ).toThrow("no such directory");
  });
});

test("the store: the flag, else the user's cache directory", () => {
  expect(localStore({ modelsDir: "/models", env: {} })).toBe("/models");
  expect(localStore({ env: { XDG_CACHE_HOME: "/x" } })).toBe("/x/mlxcel/models");
  expect(localStore({ env: { HOME: "/h" } })).toBe("/h/.cache/mlxcel/models");
});
