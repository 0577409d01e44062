/**
 * The models of the comparison, made from the demo model. Every server reads its limits differently (256 tokens in one
 * file, 128 in another), so here all files say 512 and nothing is cut.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { random } from "../../src/cli/bench/corpus.ts";

const FOLDER = join(import.meta.dir, "../../build/bench");
const MAX_TOKENS = 512;
const CLASSIFIER_SCALE = 0.5;

export interface BenchModels {
  /** Directories. */
  readonly embedder: string;
  /** The same network with a random head: its speed is real, its scores mean nothing. */
  readonly reranker: string;
  readonly embedderOnnx: string;
  readonly rerankerOnnx: string;
}

/** Writes the models; the ONNX files only where they are older than the checkpoint. */
export function writeModels(source: string, python: string): BenchModels {
  const models = {
    embedder: join(FOLDER, "embedder"),
    reranker: join(FOLDER, "reranker"),
    embedderOnnx: join(FOLDER, "embedder.onnx"),
    rerankerOnnx: join(FOLDER, "reranker.onnx"),
  };
  mkdirSync(FOLDER, { recursive: true });
  for (const directory of [models.embedder, models.reranker]) {
    const names = ["config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"];
    for (const name of [...names, "special_tokens_map.json"]) copy(source, directory, name);
    editJson(join(directory, "tokenizer.json"), { truncation: null, padding: null });
    editJson(join(directory, "tokenizer_config.json"), { model_max_length: MAX_TOKENS });
  }
  const ofSentences = ["1_Pooling", "modules.json", "config_sentence_transformers.json"];
  for (const name of [...ofSentences, "sentence_bert_config.json", "model.safetensors"]) {
    copy(source, models.embedder, name);
  }
  editJson(join(models.embedder, "sentence_bert_config.json"), { max_seq_length: MAX_TOKENS });
  writeReranker(source, models.reranker);
  exportOnnx(source, python, [models.embedder, models.embedderOnnx, "embedder"]);
  exportOnnx(source, python, [models.reranker, models.rerankerOnnx, "reranker"]);
  return models;
}

function copy(source: string, directory: string, name: string): void {
  cpSync(join(source, name), join(directory, name), { recursive: true });
}

function editJson(path: string, changes: Readonly<Record<string, unknown>>): void {
  const content: Record<string, unknown> = JSON.parse(readFileSync(path, "utf8"));
  writeFileSync(path, JSON.stringify({ ...content, ...changes }));
}

interface TensorEntry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

/** The embedder's tensors under the names of a classifier with one label, and that label's weights behind them. */
function writeReranker(source: string, directory: string): void {
  const config = join(directory, "config.json");
  editJson(config, {
    architectures: ["BertForSequenceClassification"],
    id2label: { "0": "LABEL_0" },
    label2id: { LABEL_0: 0 },
  });
  const { hidden_size: hidden }: { hidden_size: number } = JSON.parse(readFileSync(config, "utf8"));
  const file = readFileSync(join(source, "model.safetensors"));
  const headerBytes = Number(file.readBigUInt64LE(0));
  const header: Record<string, TensorEntry> = JSON.parse(file.toString("utf8", 8, 8 + headerBytes));
  const { __metadata__: metadata, ...tensors } = header;
  const weights = file.subarray(8 + headerBytes);
  const next = random(8);
  // the head's weights, then its bias 0
  const head = Float32Array.from({ length: hidden + 1 }, (_, i) =>
    i < hidden ? CLASSIFIER_SCALE * (2 * next() - 1) : 0,
  );
  const [start, middle] = [weights.length, weights.length + 4 * hidden];
  const renamed = {
    __metadata__: metadata,
    ...Object.fromEntries(Object.entries(tensors).map(([name, entry]) => [`bert.${name}`, entry])),
    "classifier.weight": { dtype: "F32", shape: [1, hidden], data_offsets: [start, middle] },
    "classifier.bias": { dtype: "F32", shape: [1], data_offsets: [middle, middle + 4] },
  };
  const text = JSON.stringify(renamed);
  const written = Buffer.from(text.padEnd(Math.ceil(Buffer.byteLength(text) / 8) * 8));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(written.length));
  writeFileSync(
    join(directory, "model.safetensors"),
    Buffer.concat([size, written, weights, Buffer.from(head.buffer)]),
  );
}

function exportOnnx(source: string, python: string, args: readonly [string, string, string]): void {
  const [, path] = args;
  const checkpoint = statSync(join(source, "model.safetensors"));
  if (existsSync(path) && statSync(path).mtimeMs > checkpoint.mtimeMs) return;
  console.error(`writing ${path}`);
  const command = [python, join(import.meta.dir, "export_onnx.py"), ...args];
  const { exitCode, stderr } = Bun.spawnSync(command, { stdout: "ignore", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`export_onnx.py failed:\n${stderr.toString()}`);
}
