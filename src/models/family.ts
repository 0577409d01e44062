import type { ModelType } from "../checkpoint/model-types.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { Encoder } from "../nn/encoder.ts";
import type { SequenceClassifier } from "../nn/sequence-classifier.ts";
import type { PoolingMode } from "../pipeline/pooling.ts";
import type { InstructionPrompt } from "./instruction-prompt.ts";

/** One `model_type`: one file in models/, listed in registry.ts. */
export interface ModelFamily {
  readonly modelType: ModelType;
  /** The models that people know it by. */
  readonly publishedAs: string;
  /** What bounds a row, for people: a number of tokens, or the setting in config.json. */
  readonly lengthLimit: string;
  /** Used where the checkpoint has no pooling module. */
  readonly defaultPooling: PoolingMode;
  /** Prefixes that published checkpoints put in front of the names of the encoder's tensors, such as `bert.`. */
  readonly weightPrefixes: readonly string[];
  /** Half precision overflows in this network: it is computed in f32 whatever its weights are stored in. */
  readonly needsFloat32?: boolean;
  /** Its language models can rank by answering yes or no. */
  readonly answersYesOrNo?: boolean;
  /** Absent: instructions are ignored. */
  readonly instructionPrompt?: InstructionPrompt;
  /**
   * Builds the network from `config.json` (unparsed) and the tensors. Throws CheckpointError naming the setting
   * or the tensor when either is unknown or missing.
   */
  load(config: unknown, weights: Weights): Encoder;
  /** Rows of the table of token types, from `config.json`; absent: the family has none. */
  typeCount?(config: unknown): number;
  /** Builds the network with its `…ForSequenceClassification` head, like `load`; absent: the family has none. */
  loadClassifier?(config: unknown, weights: Weights): SequenceClassifier;
}
