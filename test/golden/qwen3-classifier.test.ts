import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import { readCheckpoint } from "../../src/checkpoint/checkpoint.ts";
import { CheckpointError } from "../../src/checkpoint/error.ts";
import { loadReranker } from "../../src/models/load-reranker.ts";
import { openWeights } from "../../src/models/open-weights.ts";
import { qwen3 } from "../../src/models/qwen3.ts";
import { raggedBatch } from "../../src/nn/ragged.ts";
import { copyOfFixture, editJson, fixture } from "../fixtures/fixtures.ts";
import { editTensors } from "../fixtures/tensors.ts";
import { describeCrossEncoders } from "./cross-encoder.ts";

const device = mx.openDevice("cpu");

describeCrossEncoders(["rerank-qwen3-seqcls"]);

test("a score of two labels is refused", () => {
  const directory = copyOfFixture("rerank-qwen3-seqcls");
  editTensors(directory, (tensor, name) =>
    name === "score.weight" ? mx.concatenate([tensor, tensor], 0) : tensor,
  );
  const load = () => loadReranker({ directory, device });
  expect(load).toThrow(CheckpointError);
  expect(load).toThrow(/2 labels.*"score\.weight"/);
});

describe("a row is judged by its last token", () => {
  const PAD = 640;
  /** Logits of rows of ids, with another pad_token_id in config.json. */
  function logits(padId: number | null, rows: readonly (readonly number[])[]) {
    const directory = copyOfFixture("rerank-qwen3-seqcls");
    editJson<Record<string, unknown>>(join(directory, "config.json"), (config) =>
      Object.assign(config, { pad_token_id: padId }),
    );
    const checkpoint = readCheckpoint(directory);
    const { weights } = openWeights(checkpoint, qwen3, { device });
    const classifier = qwen3.loadClassifier!(checkpoint.config, weights);
    weights.close();
    const batch = raggedBatch(rows.map((ids) => ({ ids: Int32Array.from(ids) })));
    return mx.scope(() => classifier.logits(batch).toFloat32());
  }

  const text = [71, 298, 390];
  const rows = [text, [...text, PAD], [...text, PAD, PAD], [PAD, PAD]];

  test("that is not the padding token, as the reference does it", () => {
    const [plain, one, two, onlyPads] = logits(PAD, rows);
    expect(one).toBeCloseTo(plain!, 5);
    expect(two).toBeCloseTo(plain!, 5);
    expect(onlyPads).toBeCloseTo(logits(PAD, [[PAD]])[0]!, 5);
  });

  test("whatever it is, where there is no padding token", () => {
    const [plain, one, two] = logits(null, rows);
    expect(Math.abs(one! - plain!)).toBeGreaterThan(0.01);
    expect(Math.abs(two! - one!)).toBeGreaterThan(0.01);
  });
});

test("the checkpoint of a generative reranker is not a classifier, nor the other way round", () => {
  expect(loadReranker({ directory: fixture("rerank-qwen3"), device }).takesInstruction).toBe(true);
  expect(loadReranker({ directory: fixture("rerank-qwen3-seqcls"), device }).takesInstruction).toBe(
    false,
  );
});
