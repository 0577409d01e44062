/** What counts as a model of the store, whoever put it there. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { temporaryDirectory } from "../../test/fixtures/fixtures.ts";
import { filesBelow } from "./files-below.ts";
import { lastUsed, markUsed } from "./last-use.ts";
import { findModel, resolveModel } from "./resolve.ts";
import { removeStored, repositoryAt, sizeOf, storedModels } from "./store.ts";

let store = "";

beforeEach(() => {
  store = mkdtempSync(join(tmpdir(), "mlxcel-store-"));
});
afterEach(() => rmSync(store, { recursive: true }));

function put(path: string): void {
  mkdirSync(dirname(join(store, path)), { recursive: true });
  writeFileSync(join(store, path), "{}");
}

const inStore = () => ({ modelsDir: store, env: { HOME: join(store, "nobody") } });
const options = () => ({
  ...inStore(),
  offline: true,
  listener: { remark() {}, progress() {} },
});

describe("a name per model", () => {
  test("an owner is no model because of the GGUF files of its models", () => {
    put("owner/gguf/model-Q8_0.gguf");
    expect(storedModels(store)).toEqual(["owner/gguf"]);
    expect(findModel("owner", inStore())).toBeUndefined();
  });

  test("a file beside the models is none of them", () => {
    put("notes");
    expect(storedModels(store)).toEqual([]);
    expect(findModel("notes", inStore())).toBeUndefined();
  });

  test("the folders of a model are no models of their own", () => {
    put("alone/config.json");
    put("alone/1_Pooling/config.json");
    put("quants.of.mine/a-Q8_0.gguf");
    put("quants.of.mine/more/b-F16.gguf");
    expect(storedModels(store)).toEqual(["alone", "quants.of.mine"]);
  });

  test("each path in a model leads back to its name, and paths elsewhere to none", () => {
    put("alone/config.json");
    put("owner/gguf/Q8_0/model-Q8_0.gguf");
    expect(repositoryAt(store, join(store, "alone"))).toBe("alone");
    expect(repositoryAt(store, join(store, "owner/gguf/Q8_0/model-Q8_0.gguf"))).toBe("owner/gguf");
    for (const path of [store, dirname(store), tmpdir()]) {
      expect(repositoryAt(store, path)).toBeUndefined();
    }
  });
});

describe("GGUF files in folders", () => {
  test.each([
    ["Q8_0/m-Q8_0.gguf", "F16/m-F16.gguf"],
    ["m-F16.gguf", "UD-Q4_K_XL/m-UD-Q4_K_XL.gguf"],
    ["m.Q4_K_M/m.Q4_K_M.gguf", "m-bf16/m-bf16-00001-of-00002.gguf"],
    ["gguf/m-IQ4_XS.gguf", "gguf/m.q8_0.gguf"],
  ])("%s and %s are one model in two quantisations", (...files) => {
    for (const file of files) put(`repo/${file}`);
    const { directory = "" } = findModel(join(store, "repo"), inStore()) ?? {};
    expect(files).toContain(relative(join(store, "repo"), directory));
  });

  test.each([
    ["bert-f32/model.gguf", "qwen-f32/model.gguf"],
    ["Q8_0/bert-Q8_0.gguf", "Q8_0/qwen-Q8_0.gguf"],
    ["bert/model.gguf", "qwen/config.json"],
  ])("%s and %s are two models: none is chosen", (...files) => {
    for (const file of files) put(`models/${file}`);
    const path = join(store, "models");
    expect(() => findModel(path, inStore())).toThrow(
      `model ${path} holds several models: ${files[0]}, ${files[1]?.replace("/config.json", "")}; name one, such as ${path}/${files[0]}`,
    );
  });

  test("of many models a few are named", () => {
    for (const name of ["a", "b", "c", "d", "e"]) put(`models/${name}/model.gguf`);
    expect(() => findModel(join(store, "models"), inStore())).toThrow(
      "a/model.gguf, b/model.gguf, c/model.gguf and 2 more; name one",
    );
  });
});

describe("a folder that is not called as the hub calls repositories", () => {
  const names = ["o/a--b", "o/b:Q8_0", "o/odd name", "o/name.", "model.gguf", "o/one\ntwo", "~x"];

  test.each(names)("%j: what is listed is found by that name", async (name) => {
    put(`${name}/config.json`);
    expect(storedModels(store)).toEqual([name]);
    expect(findModel(name, inStore())?.directory).toBe(join(store, name));
    expect((await resolveModel(name, options())).id).toBe(basename(name));
    expect(lastUsed(store, name)).toBeInstanceOf(Date);
    await removeStored(store, name);
    expect(storedModels(store)).toEqual([]);
  });

  test("is one that is listed: nothing hidden, nothing outside of the store", () => {
    put("inside/o/m/config.json");
    put(".locks/config.json");
    put("inside/.hidden/m/config.json");
    put("inside/o/.m.partial/config.json");
    put("config.json");
    const inside = { ...inStore(), modelsDir: join(store, "inside") };
    for (const name of ["../.locks", ".hidden/m", "o/.m.partial", "o/../o/m", "o//m"]) {
      expect(() => findModel(name, inside)).toThrow();
    }
    expect(findModel("o", inside)).toBeUndefined();
  });
});

describe("last use", () => {
  test("is noted for models of every origin, by name and by path, and leaves their files alone", async () => {
    const models = ["copied/checkpoint", "copied/gguf", "mine/linked"];
    put("copied/checkpoint/config.json");
    put("copied/gguf/model-Q8_0.gguf");
    mkdirSync(join(store, "mine"));
    symlinkSync(join(store, "copied/checkpoint"), join(store, "mine/linked"));
    const changed = lstatSync(join(store, "copied/checkpoint/config.json")).mtimeMs;
    expect(models.map((name) => lastUsed(store, name))).toEqual([undefined, undefined, undefined]);

    await resolveModel("copied/checkpoint", options());
    await resolveModel(join(store, "copied/gguf"), options());
    await resolveModel("mine/linked", options());
    for (const name of models) expect(lastUsed(store, name)).toBeInstanceOf(Date);
    expect(storedModels(store)).toEqual(models);
    expect(lstatSync(join(store, "copied/checkpoint/config.json")).mtimeMs).toBe(changed);
  });

  test("of a GGUF file beside the models, which has no name there, is not noted", async () => {
    put("loose.gguf");
    const { directory } = await resolveModel(join(store, "loose.gguf"), options());
    expect(directory).toBe(join(store, "loose.gguf"));
    expect(existsSync(join(store, ".used"))).toBe(false);
  });

  test("is forgotten with the model", async () => {
    put("owner/model/config.json");
    markUsed(store, "owner/model");
    await removeStored(store, "owner/model");
    expect(lastUsed(store, "owner/model")).toBeUndefined();
  });
});

describe("a link that leads nowhere", () => {
  beforeEach(() => {
    mkdirSync(join(store, "owner"));
    symlinkSync("/no/such/place", join(store, "owner/gone"));
    symlinkSync("circle", join(store, "owner/circle"));
    symlinkSync("/no/such/place", join(store, "disk"));
  });

  test("is listed, so that it can be removed", async () => {
    const names = ["disk", "owner/circle", "owner/gone"];
    expect(storedModels(store)).toEqual(names);
    for (const name of names) await removeStored(store, name);
    expect(storedModels(store)).toEqual([]);
    expect(existsSync(join(store, "owner"))).toBe(false);
  });

  test("is named as the reason where its model is asked for, and nothing is downloaded in its place", async () => {
    await expect(resolveModel("owner/gone", { ...options(), offline: false })).rejects.toThrow(
      `model owner/gone: ${store}/owner/gone is a link to /no/such/place, which is not there; mlxcel rm owner/gone removes the link`,
    );
  });
});

describe("links in the folder of a model", () => {
  const elsewhere = temporaryDirectory("elsewhere");

  beforeEach(() => {
    put("o/m/config.json");
    put("o/m/1_Pooling/config.json");
    writeFileSync(join(elsewhere, "blob"), "12345");
    symlinkSync("../../o", join(store, "o/m/circle"));
    symlinkSync("..", join(store, "o/m/up"));
    symlinkSync("me", join(store, "o/m/me"));
    symlinkSync(elsewhere, join(store, "o/m/outside"));
    symlinkSync(join(elsewhere, "blob"), join(store, "o/m/model.safetensors"));
  });

  test("count as the file they lead to, and for nothing where that is a folder or their own circle", () => {
    expect(storedModels(store)).toEqual(["o/m"]);
    expect(filesBelow(join(store, "o/m")).toSorted((a, b) => a.sizeBytes - b.sizeBytes)).toEqual([
      { path: expect.stringMatching(/^(1_Pooling.)?config.json$/), sizeBytes: 2 },
      { path: expect.stringMatching(/^(1_Pooling.)?config.json$/), sizeBytes: 2 },
      { path: "model.safetensors", sizeBytes: 5 },
    ]);
    expect(sizeOf(join(store, "o/m"))).toBe(9);
  });

  test("are deleted with it, and what they lead to is not", async () => {
    put("o/other/config.json");
    await removeStored(store, "o/m");
    expect(storedModels(store)).toEqual(["o/other"]);
    expect(existsSync(join(elsewhere, "blob"))).toBe(true);
  });
});
