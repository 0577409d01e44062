/** Downloads from a hub on this machine, over sockets. */
import { beforeEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { lastUsed } from "./last-use.ts";
import { readManifest } from "./manifest.ts";
import { pullModel } from "./resolve.ts";
import { storedModels } from "./store.ts";
import { bert, freshDownloads, ofWeights, small, WEIGHTS, weights } from "./testing/downloads.ts";
import { commitOf, filesOf } from "./testing/hub-server.ts";
const ADAPTER = "adapter_model.safetensors";
const downloads = freshDownloads();

describe("what is downloaded", () => {
  test("the files that a model needs, byte for byte, over all pages of the listing", async () => {
    const { directory, id, name } = await downloads().resolve("owner/bert");
    expect({ directory, id, name }).toEqual({
      directory: join(downloads().store, "owner/bert"),
      id: "bert",
      name: "owner/bert",
    });
    expect(readdirSync(directory).sort()).toEqual([
      ".mlxcel.json",
      "1_Pooling",
      "config.json",
      "config_sentence_transformers.json",
      "model.safetensors",
      "modules.json",
      "sentence_bert_config.json",
      "special_tokens_map.json",
      "tokenizer.json",
      "tokenizer_config.json",
    ]);
    for (const file of [WEIGHTS, "1_Pooling/config.json", "tokenizer.json"]) {
      expect(readFileSync(join(directory, file))).toEqual(
        readFileSync(join(fixture("bert-mean"), file)),
      );
    }
    expect(readdirSync(join(downloads().store, "owner"))).toEqual(["bert"]);
  });

  test("the manifest says where it came from", async () => {
    const { directory } = await downloads().resolve("owner/bert", { revision: "v1" });
    expect(readManifest(directory)).toMatchObject({
      repository: "owner/bert",
      endpoint: downloads().hub.url,
      revision: "v1",
      commit: commitOf(bert),
    });
  });

  test("the single file of weights where there are shards as well, and shards with their index", async () => {
    const sharded = filesOf(fixture("bert-sharded"));
    downloads().hub.repositories["owner/sharded"] = { files: sharded };
    downloads().hub.repositories["owner/both"] = { files: { ...sharded, [WEIGHTS]: weights } };
    const shards = (directory: string) =>
      readdirSync(directory).filter((name) => name.startsWith("model"));
    expect(shards((await downloads().resolve("owner/sharded")).directory).sort()).toEqual([
      "model-00001-of-00002.safetensors",
      "model-00002-of-00002.safetensors",
      "model.safetensors.index.json",
    ]);
    expect(shards((await downloads().resolve("owner/both")).directory)).toEqual([WEIGHTS]);
  });

  test("modules that lie in other folders, with their weights", async () => {
    const modules = [
      { type: "sentence_transformers.models.Transformer", path: "0_Transformer" },
      { type: "sentence_transformers.models.Pooling", path: "1_Pooling" },
      { type: "sentence_transformers.models.Dense", path: "2_Dense/" },
    ];
    downloads().hub.repositories["owner/folders"] = {
      files: {
        "modules.json": JSON.stringify(modules),
        "0_Transformer/config.json": "{}",
        [`0_Transformer/${WEIGHTS}`]: weights,
        "0_Transformer/vocab.txt": "the",
        "1_Pooling/config.json": "{}",
        "2_Dense/config.json": "{}",
        [`2_Dense/${WEIGHTS}`]: "dense",
        "3_Other/config.json": "{}",
      },
    };
    const { directory } = await downloads().resolve("owner/folders");
    const paths = readManifest(directory)?.files.map(({ path }) => path);
    expect(paths?.sort()).toEqual([
      "0_Transformer/config.json",
      `0_Transformer/${WEIGHTS}`,
      "0_Transformer/vocab.txt",
      "1_Pooling/config.json",
      "2_Dense/config.json",
      `2_Dense/${WEIGHTS}`,
      "modules.json",
    ]);
  });

  test("two equal files arrive once and are both there", async () => {
    downloads().hub.repositories["owner/equal"] = {
      files: { ...small.files, "1_Pooling/config.json": "{}", "config.json": "{}" },
    };
    const { directory } = await downloads().resolve("owner/equal");
    expect(readFileSync(join(directory, "1_Pooling/config.json"), "utf8")).toBe("{}");
    expect(
      downloads().hub.requests.filter(({ path }) => path?.endsWith("config.json")),
    ).toHaveLength(1);
  });

  test("the base of an adapter is fetched with it, at its own revision", async () => {
    const { hub, store } = downloads();
    const config = { base_model_name_or_path: "owner/bert", revision: "v1" };
    const adapter = { "adapter_config.json": JSON.stringify(config), [ADAPTER]: weights };
    hub.repositories["owner/lora"] = { files: adapter };
    const resolved = { directory: join(store, "owner/lora"), base: join(store, "owner/bert") };
    expect(await downloads().resolve("owner/lora")).toMatchObject(resolved);
    expect(readManifest(join(store, "owner/bert"))?.revision).toBe("v1");
    const lost = { base_model_name_or_path: "owner/lost" };
    const files = { ...adapter, "adapter_config.json": JSON.stringify(lost) };
    hub.repositories["owner/lora2"] = { files };
    await expect(pullModel("owner/lora2", downloads().options())).rejects.toThrow(
      /^owner\/lora2 is an adapter of owner\/lost: model owner\/lost was not found/,
    );
  });

  test.each([
    [{ "config.json": "{}", "pytorch_model.bin": "x" }, /pytorch_model.bin, a pickle file/],
    [{ "config.json": "{}", "README.md": "x" }, /nothing to load/],
  ])("a repository without weights that can be read is refused: %j", async (files, reason) => {
    downloads().hub.repositories["owner/odd"] = { files };
    await expect(downloads().resolve("owner/odd")).rejects.toThrow(reason);
    expect(storedModels(downloads().store)).toEqual([]);
  });
});

describe("GGUF", () => {
  const files = {
    "model-Q4_K_M.gguf": "q4",
    "model-q8_0.gguf": "q8",
    "model-F16.gguf": "f16",
    "mmproj-model-f16.gguf": "projector",
    "README.md": "x",
  };
  beforeEach(() => {
    downloads().hub.repositories["owner/gguf"] = { files };
  });

  test.each([
    ["owner/gguf:Q8_0", "model-q8_0.gguf"],
    ["owner/gguf:q4_k_m", "model-Q4_K_M.gguf"],
    ["owner/gguf:model-F16.gguf", "model-F16.gguf"],
    ["owner/gguf:latest", "model-q8_0.gguf"],
    ["owner/gguf", "model-q8_0.gguf"],
  ])("%s is one file", async (name, file) => {
    expect(await downloads().resolve(name)).toMatchObject({
      directory: join(downloads().store, "owner/gguf", file),
      id: "gguf",
    });
    expect(readdirSync(join(downloads().store, "owner/gguf"))).toEqual([".mlxcel.json", file]);
  });

  test("without a name behind the colon the choice is said", async () => {
    await downloads().resolve("owner/gguf");
    expect(downloads().remarks).toContain("owner/gguf: taking model-q8_0.gguf");
    expect(downloads().remarks).toContainEqual(expect.stringContaining("(1 file, 2 B"));
  });

  test("a second one joins the first", async () => {
    await downloads().resolve("owner/gguf:Q8_0");
    await downloads().resolve("owner/gguf:F16");
    expect(downloads().hub.requestsOf("model-q8_0.gguf")).toHaveLength(1);
    expect(
      readManifest(join(downloads().store, "owner/gguf"))?.files.map(({ path }) => path),
    ).toEqual(["model-q8_0.gguf", "model-F16.gguf"]);
  });

  test("what is not there or not clear lists what there is", async () => {
    await expect(downloads().resolve("owner/gguf:Q2_K")).rejects.toThrow(
      "Q2_K is not there; it has model-Q4_K_M.gguf, model-q8_0.gguf, model-F16.gguf",
    );
    downloads().hub.repositories["owner/two"] = {
      files: { "a-Q8_0.gguf": "a", "b-Q8_0.gguf": "b" },
    };
    await expect(downloads().resolve("owner/two:Q8_0")).rejects.toThrow(
      "a-Q8_0.gguf or b-Q8_0.gguf",
    );
    downloads().hub.repositories["owner/parts"] = { files: { "a-Q8_0-00001-of-00002.gguf": "a" } };
    await expect(downloads().resolve("owner/parts:Q8_0")).rejects.toThrow("is in parts");
    await expect(downloads().resolve("owner/bert:Q8_0")).rejects.toThrow("it has no GGUF file");
  });
});

describe("what is here already", () => {
  test("is not downloaded again, and its use is noted", async () => {
    await downloads().resolve("owner/small");
    const used = () => lastUsed(downloads().store, "owner/small")?.getTime() ?? 0;
    const before = used();
    downloads().hub.requests.length = 0;
    await Bun.sleep(5);
    await downloads().resolve("owner/small");
    expect(downloads().hub.requests).toEqual([]);
    expect(used()).toBeGreaterThan(before);
  });

  test("pull compares it with the hub and fetches what has changed alone", async () => {
    await pullModel("owner/small", downloads().options());
    await pullModel("owner/small", downloads().options());
    expect(downloads().remarks.at(-1)).toMatch(
      /^owner\/small is up to date \(commit [0-9a-f]{7}\)$/,
    );
    downloads().hub.repositories["owner/small"] = {
      files: { ...small.files, "config.json": '{"a":1}' },
    };
    await pullModel("owner/small", downloads().options());
    expect(readFileSync(join(downloads().store, "owner/small/config.json"), "utf8")).toBe(
      '{"a":1}',
    );
    expect(downloads().storedWeights("owner/small")).toEqual(weights);
    expect(downloads().hub.rangesOf(WEIGHTS)).toEqual([0]);
    expect(readdirSync(join(downloads().store, "owner"))).toEqual(["small"]);
  });

  test("another revision takes its place", async () => {
    await downloads().resolve("owner/bert");
    await downloads().resolve("owner/bert", { revision: "v1" });
    expect(readManifest(join(downloads().store, "owner/bert"))?.revision).toBe("v1");
    await downloads().resolve("owner/bert", { revision: commitOf(bert).slice(0, 10) });
    expect(downloads().remarks.filter((line) => line.startsWith("downloading"))).toHaveLength(1);
  });

  test("what somebody else put into the store is left alone", async () => {
    mkdirSync(join(downloads().store, "owner/small"), { recursive: true });
    writeFileSync(join(downloads().store, "owner/small/config.json"), "mine");
    await pullModel("owner/small", downloads().options());
    expect(downloads().remarks).toEqual([
      expect.stringContaining("from elsewhere and left as it is"),
    ]);
    await expect(downloads().resolve("owner/small", { revision: "v1" })).rejects.toThrow(
      "its revision is not known",
    );
    expect(readFileSync(join(downloads().store, "owner/small/config.json"), "utf8")).toBe("mine");
    expect(downloads().hub.requests).toEqual([]);
  });
});

test("two at once: the second waits, says so, and uses what the first has brought", async () => {
  downloads().hub.fault = (request) =>
    ofWeights(request) ? { slow: { pieceBytes: 50_000, pauseMs: 30 } } : undefined;
  await Promise.all([downloads().resolve("owner/small"), downloads().resolve("owner/small")]);
  expect(downloads().remarks.filter((line) => line.startsWith("another process"))).toHaveLength(1);
  expect(downloads().hub.rangesOf(WEIGHTS)).toEqual([0]);
});

test("several files are under way at once, not all", async () => {
  const files = Object.fromEntries(
    Array.from({ length: 9 }, (_, i) => [`${i}_M/${WEIGHTS}`, randomBytes(30_000)]),
  );
  const modules = JSON.stringify(Object.keys(files).map((path) => ({ path: path.split("/")[0] })));
  const { hub } = downloads();
  hub.repositories["owner/many"] = { files: { ...small.files, ...files, "modules.json": modules } };
  hub.fault = ({ server }) =>
    server === "cdn" ? { slow: { pieceBytes: 15_000, pauseMs: 15 } } : undefined;
  await downloads().resolve("owner/many");
  expect(hub.mostAtOnce).toBeGreaterThan(1);
  expect(hub.mostAtOnce).toBeLessThanOrEqual(4);
});

test("progress begins with what is here and ends with the whole", async () => {
  await downloads().resolve("owner/small");
  const total = weights.length + 4;
  expect(downloads().progress[0]).toBe(0);
  expect(downloads().progress.at(-1)).toBe(total);
  expect(downloads().progress).toEqual([...downloads().progress].sort((a, b) => a - b));
});

describe("offline", () => {
  test("what is missing is named, and the network is left alone", async () => {
    await expect(downloads().resolve("owner/small", { offline: true })).rejects.toThrow(
      /owner\/small not found: .*leave --offline out to download it/,
    );
    expect(downloads().hub.requests).toEqual([]);
  });

  test("what is here is served, and pull says that it did not look", async () => {
    await downloads().resolve("owner/small");
    downloads().hub.requests.length = 0;
    await downloads().resolve("owner/small", { offline: true });
    await pullModel("owner/small", downloads().options({ offline: true }));
    expect(downloads().remarks.at(-1)).toContain("with --offline it is not compared");
    expect(downloads().hub.requests).toEqual([]);
  });
});
