import { join } from "node:path";
import { z } from "zod";
import { readOptionalJson } from "./json-file.ts";

/** What sentence-transformers is told about its Transformer module, apart from config.json. */
export interface TransformerSettings {
  /** Longest row in tokens, special tokens included. */
  readonly maxLength?: number;
  /** Texts are lower-cased whatever the tokenizer itself does. */
  readonly lowerCase: boolean;
  /** Limits of the two sides of a search, and how queries are filled up: only with a vector per token. */
  readonly queryLength?: number | undefined;
  readonly documentLength?: number | undefined;
  readonly queryExpansion?: QueryExpansion | undefined;
}

/** In the order in which sentence-transformers looks for them. */
const FILES = ["bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"].map(
  (name) => `sentence_${name}_config.json`,
);

/** What a Transformer module gives by its `transformer_task`: the output of the network, and what it is called. */
const OUTPUTS = {
  "feature-extraction": ["last_hidden_state", "token_embeddings"],
  "sequence-classification": ["logits", "scores"],
} as const;

export type TransformerTask = keyof typeof OUTPUTS;

/** What the module is for. */
interface TransformerUse {
  readonly task: TransformerTask;
  /** Its token vectors are the result. */
  readonly multiVector?: boolean;
}

/** Only the listed keys: any other could ask for something that is not done. */
function only<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? `${issue.keys.map((key) => `"${key}"`).join(", ")} is not a supported setting`
        : undefined,
  });
}

const absent = z.null().optional();
const tokenCount = z.int().positive().nullish();

const queryExpansion = only({
  /** Whether `length` is also the most tokens of a query. */
  strategy: z.enum(["fixed", "min"]),
  length: z.int().positive(),
  attend: z.boolean().default(false),
  token: z.string().nullish(),
});

export type QueryExpansion = z.output<typeof queryExpansion>;

const multiVectorKeys = {
  query_length: tokenCount,
  document_length: tokenCount,
  query_expansion: queryExpansion.nullish(),
};
const noMultiVectorKeys = {
  query_length: absent,
  document_length: absent,
  query_expansion: absent,
};

/** How the network is put in memory: none of these changes what it computes. */
const modelArguments = only({
  add_pooling_layer: z.boolean().optional(),
  attn_implementation: z.string().nullish(),
  dtype: z.string().nullish(),
  torch_dtype: z.string().nullish(),
  low_cpu_mem_usage: z.boolean().optional(),
  use_safetensors: z.boolean().nullish(),
  trust_remote_code: z.boolean().optional(),
}).nullish();

const tokenizerArguments = only({
  model_max_length: tokenCount,
  padding_side: z.string().optional(), // there is no padding
  truncation_side: z.literal("right").optional(),
  use_fast: z.literal(true).optional(),
  trust_remote_code: z.boolean().optional(),
}).nullish();

const configArguments = only({
  trust_remote_code: z.boolean().optional(),
  use_cache: z.boolean().optional(),
}).nullish();

function settingsFile({ task, multiVector = false }: TransformerUse) {
  const [output, name] = OUTPUTS[task];
  const forward = z.looseObject({
    method: z.literal("forward"),
    method_output_name: z.literal(output),
  });
  return only({
    max_seq_length: tokenCount,
    do_lower_case: z.boolean().nullish(),
    transformer_task: z.literal(task).optional(),
    modality_config: only({ text: forward, message: z.unknown() })
      .partial({ message: true })
      .optional(),
    module_output_name: z.literal(name).optional(),
    processing_kwargs: only({ chat_template: z.unknown() }).partial().nullish(), // for messages only
    unpad_inputs: z.boolean().nullish(),
    ...(multiVector ? multiVectorKeys : noMultiVectorKeys),
    tokenizer_name_or_path: absent,
    // Two spellings of each.
    model_args: modelArguments,
    model_kwargs: modelArguments,
    tokenizer_args: tokenizerArguments,
    processor_kwargs: tokenizerArguments,
    config_args: configArguments,
    config_kwargs: configArguments,
  });
}

/**
 * Reads sentence_bert_config.json or its namesake of another family: the first one that says anything. Throws
 * CheckpointError naming a setting that is unknown, or that asks for something that is not done.
 */
export function readTransformerSettings(
  directory: string,
  use: TransformerUse,
): TransformerSettings {
  for (const name of FILES) {
    const file = readOptionalJson(join(directory, name), settingsFile(use));
    if (file === undefined || Object.keys(file).length === 0) continue;
    const { processor_kwargs, tokenizer_args, max_seq_length } = file;
    const maxLength =
      (processor_kwargs ?? tokenizer_args)?.model_max_length ?? max_seq_length ?? undefined;
    return {
      ...(maxLength !== undefined && { maxLength }),
      lowerCase: file.do_lower_case ?? false,
      ...(use.multiVector && {
        queryLength: file.query_length ?? undefined,
        documentLength: file.document_length ?? undefined,
        queryExpansion: file.query_expansion ?? undefined,
      }),
    };
  }
  return { lowerCase: false };
}
