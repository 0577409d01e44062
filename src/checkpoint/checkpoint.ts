import { join } from "node:path";
import { z } from "zod";
import { ADAPTER_CONFIG } from "../hub/file-names.ts";
import { ggufFileAt } from "../hub/gguf-file.ts";
import { CheckpointError } from "./error.ts";
import { readGgufHeader } from "./gguf/header.ts";
import { readGgufModel, type GgufModel } from "./gguf/model.ts";
import { readJson, readOptionalJson } from "./json-file.ts";
import {
  type LateInteractionSettings,
  multiVectorLayout,
  readLateInteraction,
} from "./late-interaction.ts";
import { isAdapter, readLoraConfig } from "./lora-config.ts";
import { readModules, type ModuleEntry } from "./modules.ts";
import { isFile, statOf } from "./regular-file.ts";
import { readTransformerSettings, type TransformerSettings } from "./transformer-settings.ts";

/** What a model directory or a GGUF file says about itself, apart from tensors and vocabulary. */
export interface Checkpoint {
  /** The directory, or the GGUF file. */
  readonly directory: string;
  /** Where the Transformer module has its files: tokenizer, config.json and weights. Mostly `directory` itself. */
  readonly transformerDirectory: string;
  /** Where config.json and the weights are: that of the base for an adapter, else `transformerDirectory`. */
  readonly weightsDirectory: string;
  /** Directory of the LoRA adapter to be merged into the weights. */
  readonly adapter?: string;
  /** The GGUF file that holds all there is; absent: a directory of files. */
  readonly gguf?: GgufModel;
  /** config.json as it is, or what says the same in a GGUF file. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly modelType: string;
  readonly architectures: readonly string[];
  /** The chain of modules.json in the order listed; undefined without that file. */
  readonly modules: readonly ModuleEntry[] | undefined;
  /** Prompt texts by name, to be put in front of an input. */
  readonly prompts: Readonly<Record<string, string>>;
  readonly defaultPromptName: string | undefined;
  /** Texts are lower-cased whatever the tokenizer itself does. */
  readonly lowerCase: boolean;
  readonly limits: LengthLimits;
  /** Of a model with one vector per token; undefined for every other. */
  readonly lateInteraction: LateInteractionSettings | undefined;
}

/** Longest row in tokens, special tokens included, as two of the files state it. */
export interface LengthLimits {
  /** `max_seq_length` of sentence_bert_config.json or its namesake of another family. */
  readonly sentenceMaxLength?: number;
  /** `model_max_length` of tokenizer_config.json. */
  readonly tokenizerMaxLength?: number;
}

const configFile = z.looseObject({
  model_type: z.string().min(1),
  architectures: z.array(z.string()).nullish(),
});

const promptsFile = z.looseObject({
  prompts: z.record(z.string(), z.string()).nullish(),
  default_prompt_name: z.string().nullish(),
});

const tokenizerConfigFile = z.looseObject({ model_max_length: z.number().positive().nullish() });

/** Tokenizers without a limit store a huge number instead of nothing. */
const UNLIMITED_TOKENS = 1e6;

/**
 * Reads a GGUF file up to its tensors, or the JSON files of a model directory; `path` may also be a directory with
 * a GGUF file instead. `base` is the directory of the model that a LoRA adapter is for. Throws CheckpointError where
 * the directory or its config.json is missing, a file is broken, or a setting is unknown.
 */
export function readCheckpoint(path: string, base?: string): Checkpoint {
  const gguf = ggufFileAt(path);
  if (gguf !== undefined) return readGguf(gguf);
  requireDirectory(path);
  return isAdapter(path) ? readAdapter(path, base) : readDirectory(path);
}

function readGguf(path: string): Checkpoint {
  const gguf = readGgufModel(readGgufHeader(path));
  const { config, contextLength, architecture, className } = gguf;
  return {
    directory: path,
    transformerDirectory: path,
    weightsDirectory: path,
    gguf,
    config,
    modelType: architecture.modelType,
    architectures: [className],
    modules: undefined,
    prompts: {},
    defaultPromptName: undefined,
    lowerCase: false,
    lateInteraction: undefined,
    limits: { sentenceMaxLength: contextLength },
  };
}

/** An adapter that sentence-transformers saved has all but config.json and weights itself, others have nothing else. */
function readAdapter(directory: string, base: string | undefined): Checkpoint {
  if (base === undefined) {
    throw new CheckpointError(
      `${join(directory, ADAPTER_CONFIG)} is that of a LoRA adapter, whose base model is not at hand`,
    );
  }
  const { gguf, adapter, ...whole } = readCheckpoint(base);
  if (gguf || adapter !== undefined) {
    throw new CheckpointError(
      `${base} is the base of the adapter ${directory}, but a GGUF file or an adapter itself; name the original model there`,
    );
  }
  if (readLoraConfig(directory).isForClassifier && !isClassifier(whole.architectures)) {
    throw new CheckpointError(
      `${join(directory, ADAPTER_CONFIG)}: "task_type" is "SEQ_CLS", but its base ${base} is no classifier; merge the adapter into its base with peft`,
    );
  }
  const own = readModules(directory) ? readDirectory(directory, whole.weightsDirectory) : whole;
  return { ...own, adapter: directory };
}

function readDirectory(directory: string, base?: string): Checkpoint {
  const modules = readModules(directory);
  const folder = modules?.find(({ type }) => type === "Transformer")?.path ?? "";
  const transformerDirectory = join(directory, folder);
  const weightsDirectory = base ?? transformerDirectory;
  const configPath = join(weightsDirectory, "config.json");
  if (!isFile(configPath)) {
    throw new CheckpointError(
      `${configPath} is missing; give a directory that holds a downloaded model`,
    );
  }
  const config = readJson(configPath, configFile);
  const prompts = readPrompts(directory);
  const architectures = config.architectures ?? [];
  const layout = multiVectorLayout(directory, { architectures, modules });
  const settings = readTransformerSettings(transformerDirectory, {
    task: isClassifier(architectures) ? "sequence-classification" : "feature-extraction",
    multiVector: layout === "MultiVectorEncoder",
  });
  return {
    directory,
    transformerDirectory,
    weightsDirectory,
    config,
    modelType: config.model_type,
    architectures,
    modules,
    prompts: prompts.byName,
    defaultPromptName: prompts.defaultName,
    lowerCase: settings.lowerCase,
    limits: readLimits(transformerDirectory, settings),
    lateInteraction: layout && readLateInteraction(directory, layout, { modules, settings }),
  };
}

function isClassifier(architectures: readonly string[]): boolean {
  return architectures[0]?.endsWith("ForSequenceClassification") ?? false;
}

function requireDirectory(directory: string): void {
  const found = statOf(directory);
  if (found === undefined) {
    throw new CheckpointError(
      `model directory ${directory} does not exist; check the path or download the model`,
    );
  }
  if (!found.isDirectory()) {
    throw new CheckpointError(
      `${directory} is a file; give the directory that holds config.json and model.safetensors`,
    );
  }
}

function readPrompts(directory: string) {
  const path = join(directory, "config_sentence_transformers.json");
  const file = readOptionalJson(path, promptsFile);
  const byName = file?.prompts ?? {};
  const defaultName = file?.default_prompt_name ?? undefined;
  if (defaultName !== undefined && !Object.hasOwn(byName, defaultName)) {
    throw new CheckpointError(
      `${path}: "default_prompt_name" is "${defaultName}", which is not one of its prompts`,
    );
  }
  return { byName, defaultName };
}

function readLimits(directory: string, { maxLength }: TransformerSettings): LengthLimits {
  const tokenizer = readOptionalJson(
    join(directory, "tokenizer_config.json"),
    tokenizerConfigFile,
  )?.model_max_length;
  return {
    ...(maxLength !== undefined && { sentenceMaxLength: maxLength }),
    ...(tokenizer != null &&
      tokenizer < UNLIMITED_TOKENS && { tokenizerMaxLength: Math.floor(tokenizer) }),
  };
}
