import { basename } from "node:path";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { YesNoPrompt } from "../pipeline/yes-no-prompt.ts";
import { YesNoReranker, type YesNoParts } from "../pipeline/yes-no-reranker.ts";
import { Tokenizer } from "../tokenizer/tokenizer.ts";
import { maxLength } from "./max-length.ts";
import { openWeights, type WeightsPlacement } from "./open-weights.ts";
import { loadPartialLanguageModel, qwen3 } from "./qwen3.ts";

interface YesNoOptions extends WeightsPlacement {
  /** Can only lower the checkpoint's limit. */
  readonly maxLength?: number | undefined;
}

const ARCHITECTURE = "Qwen3ForCausalLM";

/** Tokens of a pair that the published models are used with, though their positions reach further. */
const PUBLISHED_MAX_LENGTH = 8192;

/** Loads a generative reranker. The caller has opened the device. Throws CheckpointError naming what cannot be used. */
export function loadYesNoReranker(checkpoint: Checkpoint, options: YesNoOptions): YesNoReranker {
  return new YesNoReranker(readYesNoParts(checkpoint, options));
}

export function readYesNoParts(checkpoint: Checkpoint, options: YesNoOptions): YesNoParts {
  const { directory, config, limits } = checkpoint;
  requireArchitecture(checkpoint);
  const tokenizer = Tokenizer.of(checkpoint);
  const { weights, facts } = openWeights(checkpoint, qwen3, options);
  const { decoder, takeHead } = loadPartialLanguageModel(config, weights);
  const positions = Math.min(decoder.maxPositions, PUBLISHED_MAX_LENGTH);
  // the prompt itself refuses a limit that it does not fit
  const limit = maxLength(
    limits,
    { maxPositions: positions },
    { flag: options.maxLength, specials: 0 },
  );
  const prompt = new YesNoPrompt(tokenizer, limit);
  // mlx does not check indices: an id past the table would read foreign memory.
  if (tokenizer.vocabSize > decoder.vocabSize) {
    throw new CheckpointError(
      `tokenizer.json has ids up to ${tokenizer.vocabSize - 1}, config.json a vocab_size of ${decoder.vocabSize}; they do not belong together`,
    );
  }
  const answerHead = takeHead([prompt.yes, prompt.no]);
  weights.close();
  return {
    name: basename(directory),
    facts: {
      ...facts,
      family: qwen3.modelType,
      maxLength: limit,
      vocabSize: decoder.vocabSize,
    },
    decoder,
    answerHead,
    tokenizer,
    prompt,
  };
}

function requireArchitecture({ modelType, architectures }: Checkpoint): void {
  if (modelType === qwen3.modelType && architectures.includes(ARCHITECTURE)) return;
  const found = architectures.join(", ") || "none";
  throw new CheckpointError(
    `config.json: model_type "${modelType}" with the architecture ${found} cannot judge by yes and no; a generative reranker must be ${ARCHITECTURE}`,
  );
}
