import { cpSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import {
  copyOfFixture,
  editJson,
  fixture,
  temporaryDirectory,
} from "../../test/fixtures/fixtures.ts";
import { refusalOf } from "../../test/refusal.ts";
import { readCheckpoint } from "./checkpoint.ts";
import { kindOf } from "./kind.ts";

const failureOf = (directory: string) => refusalOf(() => readCheckpoint(directory));

test("settings, modules, prompts and limits are read from their files", () => {
  const checkpoint = readCheckpoint(fixture("bert-no-prompt-pooling"));
  expect(checkpoint.modelType).toBe("bert");
  expect(checkpoint.architectures).toEqual(["BertModel"]);
  expect(checkpoint.config.layer_norm_eps).toBe(1e-12);
  expect(checkpoint.modules?.map(({ type, path }) => [type, path])).toEqual([
    ["Transformer", ""],
    ["Pooling", "1_Pooling"],
    ["Normalize", "2_Normalize"],
  ]);
  expect(checkpoint.prompts.query).toBe("Represent the question for retrieving documents: ");
  expect(checkpoint.defaultPromptName).toBeUndefined();
  expect(checkpoint.limits).toEqual({ sentenceMaxLength: 96, tokenizerMaxLength: 96 });
});

test("a bare directory with config.json has no modules, prompts or limits", () => {
  const directory = copyOfFixture("bert-mean");
  for (const name of ["modules.json", "config_sentence_transformers.json"]) {
    rmSync(join(directory, name));
  }
  rmSync(join(directory, "sentence_bert_config.json"));
  rmSync(join(directory, "tokenizer_config.json"));
  const checkpoint = readCheckpoint(directory);
  expect(checkpoint.modules).toBeUndefined();
  expect(checkpoint.prompts).toEqual({});
  expect(checkpoint.limits).toEqual({});
});

test("the huge number that stands for an unlimited tokenizer is no limit", () => {
  const directory = copyOfFixture("bert-mean");
  editJson<Record<string, unknown>>(join(directory, "tokenizer_config.json"), (config) => {
    config.model_max_length = 1e30;
  });
  expect(readCheckpoint(directory).limits).toEqual({ sentenceMaxLength: 96 });
});

test("a missing directory, a file and a directory without config.json are named", () => {
  expect(failureOf("no-such-model")).toContain("no-such-model does not exist");
  expect(failureOf(fixture("bert-mean/config.json"))).toContain("is a file");
  expect(failureOf(fixture("bert-mean/1_Pooling/../2_Dense"))).toContain("does not exist");
  expect(failureOf(temporaryDirectory("empty"))).toContain("config.json is missing");
});

test("broken JSON names the file", () => {
  for (const name of ["config.json", "modules.json", "sentence_bert_config.json"]) {
    const directory = copyOfFixture("bert-mean");
    writeFileSync(join(directory, name), '{"model_type": "bert",');
    expect(failureOf(directory)).toContain(`${name} is not valid JSON`);
  }
});

test("a value of the wrong kind names the file and the key", () => {
  const directory = copyOfFixture("bert-mean");
  writeFileSync(join(directory, "config.json"), '{"model_type": 7}');
  expect(failureOf(directory)).toMatch(/config\.json: model_type: /);
});

test("a module type is known by the last part of its name", () => {
  const directory = copyOfFixture("bert-mean");
  editJson<{ type: string }[]>(join(directory, "modules.json"), (modules) => {
    const pooling = modules[1];
    if (pooling)
      pooling.type = "sentence_transformers.sentence_transformer.modules.pooling.Pooling";
  });
  expect(readCheckpoint(directory).modules?.[1]?.type).toBe("Pooling");
});

test("an unknown module type stops the load by name", () => {
  const directory = copyOfFixture("bert-mean");
  editJson<{ type: string }[]>(join(directory, "modules.json"), (modules) => {
    modules.push({ type: "sentence_transformers.models.WordWeights" });
  });
  expect(failureOf(directory)).toContain("sentence_transformers.models.WordWeights");
});

test.each(["../../x", "/etc", "a/../../b", "..", "C:\\x", "\\\\host\\x", "2_Dense\\..\\.."])(
  "a module cannot lie outside of the directory: %s",
  (path) => {
    for (const module of [0, 1]) {
      const directory = copyOfFixture("bert-mean");
      editJson<{ path: string }[]>(join(directory, "modules.json"), (modules) => {
        modules[module]!.path = path;
      });
      expect(failureOf(directory)).toContain("leads out of the model's directory");
    }
  },
);

test("a module's folder may be a link, as files of a download cache are", () => {
  const directory = copyOfFixture("bert-mean");
  const elsewhere = temporaryDirectory("blobs");
  renameSync(join(directory, "config.json"), join(elsewhere, "blob"));
  symlinkSync(join(elsewhere, "blob"), join(directory, "config.json"));
  editJson<{ path: string }[]>(join(directory, "modules.json"), (modules) => {
    modules[1]!.path = "./1_Pooling";
  });
  expect(readCheckpoint(directory).modelType).toBe("bert");
});

test("the Transformer module's files lie in its folder", () => {
  const directory = copyOfFixture("bert-mean");
  editJson<{ path: string }[]>(join(directory, "modules.json"), (modules) => {
    modules[0]!.path = "0_Transformer";
  });
  expect(failureOf(directory)).toContain(join("0_Transformer", "config.json is missing"));
  mkdirSync(join(directory, "0_Transformer"));
  for (const file of ["config.json", "tokenizer_config.json"]) {
    cpSync(fixture(`bert-mean/${file}`), join(directory, "0_Transformer", file));
  }
  const { transformerDirectory, limits } = readCheckpoint(directory);
  expect(transformerDirectory).toBe(join(directory, "0_Transformer"));
  expect(limits).toEqual({ tokenizerMaxLength: 128 });
});

test("what is no file, or cannot be looked at, is named instead of missing", () => {
  for (const name of ["config.json", "modules.json", "sentence_bert_config.json"]) {
    const directory = copyOfFixture("bert-mean");
    const path = join(directory, name);
    rmSync(path);
    mkdirSync(path);
    expect(failureOf(directory)).toContain(`${path} is a directory, not a file`);
    rmSync(path, { recursive: true });
    expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0);
    expect(failureOf(directory)).toContain(`${path} is a pipe or a device, not a file`);
    rmSync(path);
    symlinkSync(path, path);
    expect(failureOf(directory)).toMatch(/json cannot be read: ELOOP/);
  }
});

test("a default prompt that does not exist stops the load by name", () => {
  const directory = copyOfFixture("bert-mean");
  editJson<Record<string, unknown>>(
    join(directory, "config_sentence_transformers.json"),
    (config) => {
      config.default_prompt_name = "search";
    },
  );
  expect(failureOf(directory)).toContain('"search"');
});

test("classifiers are rerankers, pooled and encoder-only models embed, the rest chats", () => {
  const embedder = readCheckpoint(fixture("bert-mean"));
  const bare = { ...embedder, directory: fixture("tokenizers"), modules: undefined };
  const kind = (modelType: string, architecture: string, config = {}) =>
    kindOf({ ...bare, modelType, architectures: [architecture], config });
  expect(kindOf(embedder)).toBe("embedding");
  expect(kind("bert", "BertForMaskedLM")).toBe("embedding");
  expect(kind("bert", "BertForSequenceClassification")).toBe("reranker");
  expect(kind("qwen3", "Qwen3ForCausalLM")).toBe("chat");
  expect(kindOf({ ...embedder, modelType: "qwen3", architectures: ["Qwen3ForCausalLM"] })).toBe(
    "embedding",
  );
  expect(kind("t5", "T5EncoderModel")).toBe("embedding");
  expect(kind("t5", "T5ForConditionalGeneration")).toBe("chat");
  expect(kind("gemma3_text", "Gemma3TextModel", { use_bidirectional_attention: true })).toBe(
    "embedding",
  );
  expect(kind("gemma3_text", "Gemma3TextModel")).toBe("chat");
  expect(kind("ministral3", "Ministral3Model", { is_causal: false })).toBe("embedding");
  expect(kind("ministral3", "Ministral3ForCausalLM")).toBe("chat");
  expect(kind("llama_bidirec", "LlamaBidirectionalModel")).toBe("embedding");
  expect(kind("llama", "LlamaBidirectionalModel")).toBe("embedding");
  expect(kind("embedding_gemma2", "EmbeddingGemma2Model")).toBe("embedding");
  for (const family of ["llama", "mistral", "qwen2"]) {
    for (const end of ["Model", "ForCausalLM"]) expect(kind(family, family + end)).toBe("chat");
  }
});
