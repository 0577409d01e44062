import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync, truncateSync, writeFileSync } from "node:fs";
import {
  CheckpointCopy,
  fixture,
  floatTensor,
  referenceCase,
  renamed,
  type TensorTable,
} from "../checkpoints.ts";
import { run, startServer } from "../server.ts";
import {
  embed,
  embedOne,
  expectAlive,
  expectDifferent,
  expectVector,
  refusalOf,
  unit,
} from "./answers.ts";

setDefaultTimeout(60_000);

const medium = referenceCase("bert-mean", "medium");
const short = referenceCase("bert-mean", "short");
const rows = short.token_rows ?? [];
const components = rows[0]?.map((_, i) => rows.map((row) => row[i] ?? Number.NaN)) ?? [];

/** The one line of a start that was refused because of the model's files. */
async function refusedLoad(directory: string): Promise<string> {
  const { exitCode, stderr } = await run(["serve", "--port", "0", "--embedding-model", directory]);
  const message = stderr.trimEnd();
  expect(message.split("\n")).toHaveLength(1);
  expect(exitCode).toBe(1);
  return message;
}

describe("pooling", () => {
  const mean = components.map((column) => column.reduce((a, b) => a + b, 0) / column.length);
  const pooled: Record<string, number[]> = {
    cls_token: rows[0] ?? [],
    mean_tokens: mean,
    max_tokens: components.map((column) => Math.max(...column)),
    lasttoken: rows.at(-1) ?? [],
  };
  const modes = Object.keys(pooled);
  const file = (mode: string) => ({
    word_embedding_dimension: mean.length,
    ...Object.fromEntries(modes.map((other) => [`pooling_mode_${other}`, other === mode])),
  });
  const copyWith = (mode: string) =>
    new CheckpointCopy("bert-mean").write("1_Pooling/config.json", file(mode)).directory;

  test("the reference vectors of the modes differ from one another", () => {
    for (const a of modes) {
      for (const b of modes)
        if (a !== b) expectDifferent(unit(pooled[a] ?? []), unit(pooled[b] ?? []));
    }
  });

  test.each(modes)("the checkpoint's own setting is honoured: %s", async (mode) => {
    await using server = await startServer(["--embedding-model", copyWith(mode)]);
    expectVector(await embedOne(server, short.input), unit(pooled[mode] ?? []));
  });

  test.each([
    ["mean", "mean_tokens"],
    ["cls", "cls_token"],
    ["last", "lasttoken"],
    ["max", "max_tokens"],
  ])("--pooling %s overrides the checkpoint", async (flag, mode) => {
    const other = mode === "cls_token" ? "mean_tokens" : "cls_token";
    await using server = await startServer([
      "--embedding-model",
      copyWith(other),
      "--pooling",
      flag,
    ]);
    expectVector(await embedOne(server, short.input), unit(pooled[mode] ?? []));
  });

  test("without a pooling module a BERT pools by its family's default, and says which", async () => {
    const copy = new CheckpointCopy("bert-mean").remove("modules.json").remove("1_Pooling");
    await using server = await startServer(["--embedding-model", copy.directory]);
    const { models } = JSON.parse(await (await server.get("/props")).text());
    const chosen: string = models[0].pooling;
    const mode = modes.find((name) => name.startsWith(chosen)) ?? "";
    const vector = await embedOne(server, short.input, { embd_normalize: -1 });
    expectVector(vector, pooled[mode] ?? []);
  });

  test("an unknown pooling or module stops the start by name", async () => {
    const unknownMode = new CheckpointCopy("bert-cls").set("1_Pooling/config.json", {
      pooling_mode: "attention",
    });
    expect(await refusedLoad(unknownMode.directory)).toContain("attention");
    const unknownModule = new CheckpointCopy("bert-mean").write("modules.json", [
      { idx: 0, name: "0", path: "", type: "sentence_transformers.models.Transformer" },
      { idx: 1, name: "1", path: "1_Pooling", type: "sentence_transformers.models.Pooling" },
      { idx: 2, name: "2", path: "2_Whitening", type: "sentence_transformers.models.Whitening" },
    ]);
    expect(await refusedLoad(unknownModule.directory)).toContain("Whitening");
  });
});

describe("names of tensors", () => {
  const gammaBeta = (name: string) =>
    name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
  const withExtras = (table: TensorTable): TensorTable => {
    const positions = new BigInt64Array(128).map((_, i) => BigInt(i));
    const bytes = new Uint8Array(positions.buffer);
    return new Map([
      ["cls.predictions.bias", floatTensor([3], new Float32Array(3))],
      ...renamed(table, (name) => `bert.${name}`),
      ["bert.embeddings.position_ids", { dtype: "I64", shape: [1, 128], bytes }],
      ["lm_head.weight", floatTensor([2, 2], new Float32Array(4))],
    ]);
  };
  const variants: [string, (table: TensorTable) => TensorTable | void][] = [
    ["bert. in front", (table) => renamed(table, (name) => `bert.${name}`)],
    ["model. in front", (table) => renamed(table, (name) => `model.${name}`)],
    ["gamma and beta", (table) => renamed(table, gammaBeta)],
    ["bert. and gamma and beta", (table) => renamed(table, (name) => `bert.${gammaBeta(name)}`)],
    ["tensors that nothing needs", withExtras],
    ["another order", (table) => new Map([...table].reverse())],
    [
      "no pooler, which embeddings never use",
      (table) => new Map([...table].filter(([name]) => !name.startsWith("pooler."))),
    ],
  ];

  test.each(variants)("%s: the same vectors", async (_, change) => {
    const copy = new CheckpointCopy("bert-mean").tensors(change);
    await using server = await startServer(["--embedding-model", copy.directory]);
    expectVector(await embedOne(server, medium.input), medium.embedding);
  });

  test.each(["bert-prefixed", "bert-sharded"])(
    "published layout %s gives its reference",
    async (name) => {
      const { input, embedding } = referenceCase(name, "medium");
      await using server = await startServer(["--embedding-model", fixture(name)]);
      expectVector(await embedOne(server, input), embedding);
    },
  );

  test.each([
    "embeddings.word_embeddings.weight",
    "embeddings.token_type_embeddings.weight",
    "embeddings.LayerNorm.bias",
    "encoder.layer.0.attention.self.query.weight",
    "encoder.layer.1.output.dense.bias",
  ])("a missing tensor stops the start by name: %s", async (name) => {
    const copy = new CheckpointCopy("bert-mean").tensors((table) => void table.delete(name));
    expect(await refusedLoad(copy.directory)).toContain(name);
  });

  test("a tensor of the wrong shape stops the start by name", async () => {
    const name = "encoder.layer.1.attention.self.key.weight";
    const copy = new CheckpointCopy("bert-mean").tensors((table) => {
      table.set(name, floatTensor([64, 32], new Float32Array(64 * 32)));
    });
    expect(await refusedLoad(copy.directory)).toContain(name);
  });
});

describe("shards", () => {
  const first = "model-00001-of-00002.safetensors";
  const second = "model-00002-of-00002.safetensors";

  test.each([first, second])("a missing shard stops the start by name: %s", async (shard) => {
    const copy = new CheckpointCopy("bert-sharded").remove(shard);
    expect(await refusedLoad(copy.directory)).toContain(shard);
  });

  test("a shard that lacks what the index promises stops the start by name", async () => {
    const name = "encoder.layer.1.output.dense.weight";
    const copy = new CheckpointCopy("bert-sharded").tensors(
      (table) => void table.delete(name),
      second,
    );
    expect(await refusedLoad(copy.directory)).toContain(name);
  });
});

describe("broken files", () => {
  const weights = "model.safetensors";
  const breakages: [string, string, (path: string) => void][] = [
    ["cut short", weights, (path) => truncateSync(path, 300_000)],
    ["cut in its header", weights, (path) => truncateSync(path, 100)],
    ["empty", weights, (path) => truncateSync(path, 0)],
    ["not of its format", weights, (path) => writeFileSync(path, "version https://git-lfs\n")],
    ["an endless header", weights, (path) => writeFileSync(path, Buffer.alloc(64, 0xff))],
    ["missing", weights, (path) => rmSync(path)],
    ["not JSON", "config.json", (path) => writeFileSync(path, "{")],
    ["without model_type", "config.json", (path) => writeFileSync(path, "{}")],
    ["missing", "tokenizer.json", (path) => rmSync(path)],
    ["not JSON", "tokenizer.json", (path) => writeFileSync(path, "<html>")],
    ["not JSON", "modules.json", (path) => writeFileSync(path, "[")],
    ["missing", "1_Pooling/config.json", (path) => rmSync(path)],
  ];

  test.each(breakages)(
    "%s: %s stops the start in one line that names the file",
    async (_, file, damage) => {
      const copy = new CheckpointCopy("bert-mean");
      damage(copy.path(file));
      expect(await refusedLoad(copy.directory)).toContain(file);
    },
  );

  test.each([
    ["config.json", "hidden_act", "swish_new"],
    ["config.json", "position_embedding_type", "relative_key"],
    ["config.json", "num_attention_heads", 7],
  ])("an unknown setting in %s stops the start by name: %s", async (file, key, value) => {
    const copy = new CheckpointCopy("bert-mean").set(file, { [key]: value });
    expect(await refusedLoad(copy.directory)).toContain(key);
  });

  test("an unknown family stops the start by name", async () => {
    const copy = new CheckpointCopy("bert-mean").set("config.json", { model_type: "retnet" });
    expect(await refusedLoad(copy.directory)).toContain("retnet");
  });
});

describe("a result that is not a number", () => {
  const poisonId = 500;

  test("is a 500 for its own request and leaves those of the same batch alone", async () => {
    const copy = new CheckpointCopy("bert-mean").poison(poisonId);
    await using server = await startServer(["--embedding-model", copy.directory]);
    const healthy = await embedOne(server, medium.input);
    const poisoned = [
      [2, poisonId, 3],
      [
        [2, 3],
        [poisonId, 3],
      ],
    ];
    for (const input of poisoned) {
      const refusal = await refusalOf(await server.post("/v1/embeddings", { input }));
      expect(refusal).toMatchObject({ status: 500, type: "server_error" });
    }
    const answers = await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        if (i % 2) return embed(server, { input: medium.input });
        const response = await server.post("/embedding", { input: [[poisonId]] });
        expect((await refusalOf(response)).status).toBe(500);
        return undefined;
      }),
    );
    for (const answer of answers) if (answer) expectVector(answer.vectors[0] ?? [], healthy);
    await expectAlive(server);
  });
});
