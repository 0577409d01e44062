/** Checkpoints that MLX quantised, against numbers of the dense weights that their bits stand for. */
import { describe, expect, test } from "bun:test";
import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import { readCheckpoint } from "../../src/checkpoint/checkpoint.ts";
import { readYesNoParts } from "../../src/models/load-yes-no-reranker.ts";
import { YesNoReranker } from "../../src/pipeline/yes-no-reranker.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { rerankCase, rerankReference } from "../fixtures/rerank-reference.ts";
import { describeEmbedders } from "./embedder.ts";

const device = mx.openDevice("cpu");

const pairs = z.object({
  cases: z.array(rerankCase.extend({ yes_logit: z.number(), no_logit: z.number() })).min(1),
});

/** Relative to max(1, the logit). */
const LOGIT_TOLERANCE = 2e-5;

describe.each(["on", "off"] as const)("--cpu-dequantize %s", (cpuDequantize) => {
  describeEmbedders(
    "bert",
    [
      ...["bert-mean-mlx-4bit", "bert-mean-mlx-8bit", "bert-mean-mlx-mixed"],
      ...["bert-mlx-affine", "bert-mlx-float-modes"],
    ],
    { cpuDequantize },
  );
  describeEmbedders(
    "qwen3",
    ["qwen3-embed-mlx-4bit", "qwen3-embed-mlx-8bit-bf16", "qwen3-embed-mlx-mixed"],
    { cpuDequantize },
  );

  test.each(["rerank-qwen3-mlx-4bit", "rerank-qwen3-mlx-8bit"])(
    "%s: both answers of every pair have the reference logits, alone and beside another document",
    (name) => {
      const { cases } = rerankReference(name, pairs);
      const options = { device, cpuDequantize };
      const model = new YesNoReranker(readYesNoParts(readCheckpoint(fixture(name)), options));
      for (const { input, yes_logit, no_logit, name: caseName } of cases) {
        const prepared = model.prepare(input.query, input.instruction);
        const row = prepared.pair(input.document);
        for (const rows of [[row], [prepared.pair("Something else."), row]]) {
          const answers = mx.scope(() => model.answerLogits(rows).toFloat32()).slice(-2);
          [yes_logit, no_logit].forEach((wanted, i) => {
            const allowed = LOGIT_TOLERANCE * Math.max(1, Math.abs(wanted));
            expect(Math.abs(answers[i]! - wanted), caseName).toBeLessThanOrEqual(allowed);
          });
        }
        prepared.release();
      }
    },
  );
});
