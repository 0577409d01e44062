/**
 * Measures what a yes/no reranker gains by running the shared beginning of a query's pairs once: 32 documents of about
 * 100 tokens, against every pair run whole, in turns in one process, on a random model. Prints the median and the best of both.
 * Nothing is asserted but that both give the same logits.
 *
 *     node_modules/.bin/bun test/bench/yes-no-prefix.ts [--rounds 7] [--documents 32] [--batch 8] [--hidden 256]
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import * as mx from "../../ffi/index.ts";
import { between, random, sentence } from "../../src/cli/bench/corpus.ts";
import { readCheckpoint } from "../../src/checkpoint/checkpoint.ts";
import { readYesNoParts } from "../../src/models/load-yes-no-reranker.ts";
import { raggedBatch } from "../../src/nn/ragged.ts";
import { rowStarts } from "../../src/nn/row-layout.ts";
import { YesNoReranker, type YesNoParts } from "../../src/pipeline/yes-no-reranker.ts";

const DOCUMENT_TOKENS = 100;
const LAYERS = 8;
const HEAD_DIM = 64;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    documents: { type: "string", default: "32" },
    batch: { type: "string", default: "8" },
    hidden: { type: "string", default: "256" },
  },
});
const rounds = Number(values.rounds);
const documentCount = Number(values.documents);
const rowsPerBatch = Number(values.batch);
const hidden = Number(values.hidden);

/** [rows, columns] of the order of 1/sqrt(columns), the same on every run. */
function randomMatrix(rows: number, columns: number): mx.Tensor {
  let state = 1;
  const next = () => (state = (Math.imul(state, 1664525) + 1013904223) | 0) / 2 ** 31;
  const scale = Math.sqrt(3 / columns);
  const numbers = Float32Array.from({ length: rows * columns }, () => next() * scale);
  return mx.fromFloat32(numbers, [rows, columns]);
}

/** The reranker fixture with a network of another size. */
function writeModel(directory: string): void {
  const fixture = join(import.meta.dir, "../fixtures/rerank-qwen3");
  cpSync(join(fixture, "tokenizer.json"), join(directory, "tokenizer.json"));
  const path = join(fixture, "config.json");
  const config: { readonly vocab_size: number } = JSON.parse(readFileSync(path, "utf8"));
  const [heads, kvHeads, inner] = [hidden / HEAD_DIM, hidden / HEAD_DIM / 2, 3 * hidden];
  Object.assign(config, {
    hidden_size: hidden,
    intermediate_size: inner,
    num_hidden_layers: LAYERS,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    head_dim: HEAD_DIM,
    max_position_embeddings: 8192,
  });
  writeFileSync(join(directory, "config.json"), JSON.stringify(config));
  const layer = (name: string): [string, mx.Tensor][] => [
    [`${name}.input_layernorm.weight`, mx.ones([hidden])],
    [`${name}.post_attention_layernorm.weight`, mx.ones([hidden])],
    [`${name}.self_attn.q_norm.weight`, mx.ones([HEAD_DIM])],
    [`${name}.self_attn.k_norm.weight`, mx.ones([HEAD_DIM])],
    [`${name}.self_attn.q_proj.weight`, randomMatrix(heads * HEAD_DIM, hidden)],
    [`${name}.self_attn.k_proj.weight`, randomMatrix(kvHeads * HEAD_DIM, hidden)],
    [`${name}.self_attn.v_proj.weight`, randomMatrix(kvHeads * HEAD_DIM, hidden)],
    [`${name}.self_attn.o_proj.weight`, randomMatrix(hidden, heads * HEAD_DIM)],
    [`${name}.mlp.gate_proj.weight`, randomMatrix(inner, hidden)],
    [`${name}.mlp.up_proj.weight`, randomMatrix(inner, hidden)],
    [`${name}.mlp.down_proj.weight`, randomMatrix(hidden, inner)],
  ];
  mx.scope(() => {
    const tensors = new Map([
      ["model.embed_tokens.weight", randomMatrix(config.vocab_size, hidden)],
      ["model.norm.weight", mx.ones([hidden])],
      ...Array.from({ length: LAYERS }, (_, i) => layer(`model.layers.${i}`)).flat(),
    ]);
    mx.saveSafetensors(join(directory, "model.safetensors"), tensors);
  });
}

function batches<Item>(items: readonly Item[]): Item[][] {
  const count = Math.ceil(items.length / rowsPerBatch);
  return Array.from({ length: count }, (_, i) =>
    items.slice(i * rowsPerBatch, (i + 1) * rowsPerBatch),
  );
}

/** One request through the reranker: logits in the order of the documents. */
function withSharedPrefix(model: YesNoReranker, query: string, documents: readonly string[]) {
  const prepared = model.prepare(query);
  const rows = documents.map((document) => prepared.pair(document));
  const logits = batches(rows).flatMap((batch) => [...model.start(batch).read()]);
  prepared.release();
  return logits;
}

/** The same with every pair run from its first token to its last. */
function withWholePairs(parts: YesNoParts, query: string, documents: readonly string[]) {
  const { prompt, decoder, answerHead } = parts;
  const shared = prompt.shared(query);
  const rows = documents.map((document) => {
    const content = [...shared.ids, ...prompt.document(document, shared).ids];
    return { ids: Int32Array.from([...prompt.beginning, ...content, ...prompt.end]) };
  });
  return batches(rows).flatMap((batch) => {
    const answers = mx.scope(() => {
      const ragged = raggedBatch(batch);
      const last = rowStarts(ragged.lengths).map((start, i) => start + ragged.lengths[i]! - 1);
      const states = mx.take(decoder.forward(ragged), mx.fromInt32(last, [last.length]), 0);
      return mx.matmul(states, mx.transpose(answerHead)).toFloat32();
    });
    return batch.map((_, i) => answers[2 * i]! - answers[2 * i + 1]!);
  });
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

function best(numbers: readonly number[]): number {
  return Math.min(...numbers);
}

function timeMs(body: () => unknown): number {
  const startedAt = performance.now();
  body();
  return performance.now() - startedAt;
}

const device = mx.openDevice("auto");
const directory = mkdtempSync(join(tmpdir(), "mlxcel-yes-no-prefix-"));
try {
  writeModel(directory);
  const parts = readYesNoParts(readCheckpoint(directory), { device });
  const model = new YesNoReranker(parts);
  const query = "which village by the river has a granite bridge and a silver market";
  const next = random(2);
  const documents = Array.from({ length: documentCount }, () => {
    const text = sentence(next, between(next, 20, 200));
    const { ids } = parts.tokenizer.encode(text, { maxLength: DOCUMENT_TOKENS, addSpecial: false });
    return parts.tokenizer.decode(ids);
  });
  const sharedMs: number[] = [];
  const wholeMs: number[] = [];
  const shared = () => withSharedPrefix(model, query, documents);
  const whole = () => withWholePairs(parts, query, documents);
  const wanted = whole();
  const difference = Math.max(...shared().map((logit, i) => Math.abs(logit - wanted[i]!)));
  if (!(difference < 1e-4)) throw new Error(`the logits differ by ${difference}`);
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 0) sharedMs.push(timeMs(shared));
    wholeMs.push(timeMs(whole));
    if (round % 2 === 1) sharedMs.push(timeMs(shared));
  }
  const prefixTokens = parts.prompt.beginning.length + parts.prompt.shared(query).ids.length;
  console.log(
    `${documentCount} documents of at most ${DOCUMENT_TOKENS} tokens behind ${prefixTokens} shared tokens, ` +
      `hidden size ${hidden}, ${LAYERS} layers, batches of ${rowsPerBatch}, on ${device}:`,
  );
  // The best runs are those that other programs on the machine disturbed least.
  for (const [name, of] of [["median", median] as const, ["best", best] as const]) {
    const [wholeTime, sharedTime] = [of(wholeMs), of(sharedMs)];
    const ratio = (wholeTime / sharedTime).toFixed(2);
    console.log(
      `${name}: whole pairs ${wholeTime.toFixed(0)} ms, shared prefix ${sharedTime.toFixed(0)} ms, ratio ${ratio}`,
    );
  }
  console.log(`largest difference of a logit ${difference.toExponential(1)}`);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
