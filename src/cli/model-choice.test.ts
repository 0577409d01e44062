import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chooseModels } from "./model-choice.ts";
import { parseFlags } from "./parse.ts";
import { UsageError } from "./usage-error.ts";

let root = "";

function checkpoint(name: string, config: object): void {
  mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, name, "config.json"), JSON.stringify(config));
}

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "mlxcel-models-"));
  const bert = { model_type: "bert", architectures: ["BertModel"] };
  const classifier = { model_type: "bert", architectures: ["BertForSequenceClassification"] };
  checkpoint("owner/embedder", bert);
  checkpoint("owner/other", bert);
  checkpoint("sentence-transformers/all-MiniLM-L6-v2", bert);
  checkpoint("owner/chat", { model_type: "qwen3", architectures: ["Qwen3ForCausalLM"] });
  checkpoint("owner/ranker", classifier);
  checkpoint("owner/judge", classifier);
});

afterAll(() => rmSync(root, { recursive: true }));

function choice(line: string) {
  const args = line === "" ? [] : line.split(" ");
  return chooseModels(parseFlags(["--models-dir", root, "--offline", ...args], {}).flags, {});
}

/** What is served: `E` embeddings, `R` ranking by a reranker, `e` ranking by the embedder. */
async function kinds(line: string): Promise<string> {
  const { embedder, reranker, embedderRanks } = await choice(line);
  return `${embedder ? "E" : ""}${reranker ? "R" : ""}${embedderRanks ? "e" : ""}`;
}

describe("embedders", () => {
  test("none named: the default, and the choice says so", async () => {
    expect(await choice("")).toMatchObject({
      embedder: {
        id: "all-MiniLM-L6-v2",
        names: ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"],
        isDefault: true,
      },
      reranker: undefined,
      embedderRanks: false,
    });
  });

  test.each(["-m", "--embedding-model"])(
    "%s names it: id, repository and aliases all count",
    async (flag) => {
      expect((await choice(`${flag} owner/embedder --alias a,b`)).embedder).toEqual({
        directory: join(root, "owner", "embedder"),
        id: "embedder",
        names: ["embedder", "owner/embedder", "a", "b"],
        isDefault: false,
      });
    },
  );

  test("both flags may name one model in two ways", async () => {
    const path = join(root, "owner", "embedder");
    const { embedder } = await choice(`-m ${path} --embedding-model owner/embedder`);
    expect(embedder?.names).toEqual(["embedder", path, "owner/embedder"]);
  });
});

describe("rerankers", () => {
  test.each(["-m owner/ranker", "--reranker-model owner/ranker"])(
    "%s alone: only ranking, without the default embedder",
    async (line) => {
      expect(await choice(line)).toMatchObject({
        embedder: undefined,
        reranker: { id: "ranker", names: ["ranker", "owner/ranker"], isDefault: false },
        embedderRanks: false,
      });
    },
  );

  test("a generative one is named by --reranker-model; -m may name it once more", async () => {
    expect(await kinds("--reranker-model owner/chat")).toBe("R");
    const twice = await choice(`-m ${join(root, "owner/chat")} --reranker-model owner/chat`);
    expect(twice.embedder).toBeUndefined();
    expect(twice.reranker?.names).toEqual(["chat", join(root, "owner/chat"), "owner/chat"]);
  });

  test.each([
    "-m owner/embedder --reranker-model owner/ranker",
    "--embedding-model owner/embedder -m owner/ranker",
    "--embedding-model owner/embedder --reranker-model owner/chat",
    "-m owner/ranker --reranker-model owner/ranker --embedding-model owner/embedder",
  ])("%s: one of each", async (line) => {
    expect(await kinds(line)).toBe("ER");
  });
});

describe("which kinds are served", () => {
  const both = "--embedding-model owner/embedder --reranker-model owner/ranker";
  test.each([
    [`${both} --embedding`, "E"],
    [`${both} --rerank`, "R"],
    [`${both} --pooling rank`, "R"],
    [`${both} --embedding --rerank`, "ER"],
    ["-m owner/embedder", "E"],
    ["-m owner/embedder --embedding", "E"],
    ["-m owner/embedder --rerank", "Ee"],
    ["-m owner/embedder --pooling rank", "Ee"],
    ["-m owner/embedder --embedding --rerank", "Ee"],
    ["-m owner/ranker --rerank", "R"],
    ["--rerank", "Ee"],
    ["--embedding", "E"],
  ])("%s: %s", async (line, served) => {
    expect(await kinds(line)).toBe(served);
  });

  test("a model that is switched off is named", async () => {
    expect((await choice(`${both} --embedding`)).notices).toEqual([
      "--embedding serves embeddings only: --reranker-model owner/ranker is not loaded",
    ]);
    expect((await choice(`${both} --rerank`)).notices).toEqual([
      "--rerank serves ranking only (add --embedding for both): --embedding-model owner/embedder is not loaded",
    ]);
    expect((await choice(both)).notices).toEqual([]);
  });

  test("--embedding without an embedder stops the start", async () => {
    for (const more of ["", " --rerank"]) {
      await expect(choice(`-m owner/ranker --embedding${more}`)).rejects.toThrow(
        "--embedding needs an embedding model",
      );
    }
  });
});

describe("aliases go to the model of -m, else to the only one, else to the embedder", () => {
  test.each([
    ["-m owner/ranker --embedding-model owner/embedder", "ranker"],
    ["-m owner/embedder --reranker-model owner/ranker", "embedder"],
    ["--reranker-model owner/ranker", "ranker"],
    ["--reranker-model owner/ranker --embedding-model owner/embedder", "embedder"],
    ["-m owner/embedder --reranker-model owner/ranker --rerank", "ranker"],
  ])("%s: %s", async (line, id) => {
    const { embedder, reranker } = await choice(`${line} --alias a`);
    const aliased = [embedder, reranker].filter((model) => model?.names.includes("a"));
    expect(aliased.map((model) => model?.id)).toEqual([id]);
  });
});

describe("contradictions", () => {
  test.each([
    [
      "-m owner/embedder --embedding-model owner/other",
      "-m owner/embedder and --embedding-model owner/other are two embedding models",
    ],
    [
      "-m owner/ranker --reranker-model owner/judge",
      "-m owner/ranker and --reranker-model owner/judge are two rerankers",
    ],
    [
      "-m owner/ranker --reranker-model owner/chat",
      "-m owner/ranker and --reranker-model owner/chat are two rerankers",
    ],
  ])("%s: both are named", async (line, message) => {
    await expect(choice(line)).rejects.toThrow(UsageError);
    await expect(choice(line)).rejects.toThrow(message);
  });

  test.each([
    [
      "-m owner/chat",
      "owner/chat is a chat model; this version serves embeddings and reranking: drop -m, or pass it as --reranker-model if it is a Qwen3 reranker",
    ],
    ["-m owner/chat --reranker-model owner/ranker", "owner/chat is a chat model"],
    ["-m owner/chat --embedding-model owner/embedder", "owner/chat is a chat model"],
    [
      "--embedding-model owner/ranker",
      "--embedding-model owner/ranker is a reranker, not an embedding model: serve it with --reranker-model",
    ],
    ["--embedding-model owner/chat", "--embedding-model owner/chat is a chat model"],
    ["--reranker-model owner/embedder", "give --embedding-model owner/embedder --rerank"],
    ["-m owner/absent", "owner/absent not found"],
  ])("%s: a model of the wrong kind is refused by what it is", async (line, message) => {
    await expect(choice(line)).rejects.toThrow(message);
    await expect(choice(line)).rejects.not.toThrow(UsageError);
  });
});
