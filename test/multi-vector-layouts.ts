/** Fixtures in the layouts of models with a vector per token. */
import { mkdirSync } from "node:fs";
import { CheckpointCopy, readTensors } from "./checkpoints.ts";

export interface EncoderSettings {
  /** Keeps the projection in 1_Dense. */
  readonly dense: boolean;
  readonly query_length?: unknown;
  readonly document_length?: unknown;
  readonly query_expansion?: unknown;
  readonly skiplist_words?: unknown;
  readonly skiplist_tasks?: unknown;
  readonly prompts?: unknown;
}

/** As the MultiVectorEncoder of sentence-transformers 6.2 saves a model. */
export function asMultiVectorEncoder(
  fixtureName: string,
  { dense, prompts, skiplist_words, skiplist_tasks, ...lengths }: EncoderSettings,
): CheckpointCopy {
  const copy = new CheckpointCopy(fixtureName);
  const { max_seq_length } = copy.read("sentence_bert_config.json");
  const level = { module_input_name: "token_embeddings", module_output_name: "token_embeddings" };
  if (dense) copy.set("1_Dense/config.json", level);
  for (const folder of ["2_MultiVectorMask", "3_Normalize"]) mkdirSync(copy.path(folder));
  return copy
    .write("2_MultiVectorMask/config.json", {
      skiplist_words,
      skiplist_tasks,
      keep_only_token_ids: null,
    })
    .write("3_Normalize/config.json", level)
    .write("modules.json", [
      { path: "", type: "sentence_transformers.base.modules.transformer.Transformer" },
      ...(dense
        ? [{ path: "1_Dense", type: "sentence_transformers.base.modules.dense.Dense" }]
        : []),
      {
        path: "2_MultiVectorMask",
        type: "sentence_transformers.multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask",
      },
      { path: "3_Normalize", type: "sentence_transformers.base.modules.normalize.Normalize" },
    ])
    .write("sentence_bert_config.json", {
      max_seq_length,
      transformer_task: "feature-extraction",
      modality_config: { text: { method: "forward", method_output_name: "last_hidden_state" } },
      module_output_name: "token_embeddings",
      ...lengths,
    })
    .write("config_sentence_transformers.json", {
      model_type: "MultiVectorEncoder",
      prompts,
      default_prompt_name: null,
      similarity_fn_name: null,
    });
}

/** What PyLate writes into config_sentence_transformers.json, as settings of a MultiVectorEncoder. */
export function encoderSettings(pylateFixture: string): EncoderSettings {
  const settings = new CheckpointCopy(pylateFixture).read("config_sentence_transformers.json");
  return {
    dense: true,
    prompts: { query: settings.query_prefix, document: settings.document_prefix },
    document_length: settings.document_length,
    query_expansion: {
      strategy: "fixed",
      attend: settings.attend_to_expansion_tokens,
      token: null,
      length: settings.query_length,
    },
    skiplist_words: settings.skiplist_words,
    skiplist_tasks: ["document"],
  };
}

/** As Stanford's ColBERT saves it: no modules, the projection among the network's tensors, one file of settings. */
export function asStanfordColbert(pylateFixture: string): CheckpointCopy {
  const copy = new CheckpointCopy(pylateFixture);
  const settings = copy.read("config_sentence_transformers.json");
  const projection = readTensors(copy.path("1_Dense/model.safetensors"));
  return copy
    .tensors((table) => void projection.forEach((tensor, name) => table.set(name, tensor)))
    .set("config.json", { architectures: ["HF_ColBERT"] })
    .write("artifact.metadata", {
      dim: copy.read("1_Dense/config.json").out_features,
      similarity: "cosine",
      query_token_id: settings.query_prefix,
      doc_token_id: settings.document_prefix,
      query_maxlen: settings.query_length,
      doc_maxlen: settings.document_length,
      mask_punctuation: true,
      attend_to_mask_tokens: false,
    })
    .remove("modules.json")
    .remove("1_Dense")
    .remove("config_sentence_transformers.json");
}
