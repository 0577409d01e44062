/** Fixtures of PyLate's layout in the other layouts of models with a vector per token. */
import { mkdirSync } from "node:fs";
import { CheckpointCopy, readTensors } from "./checkpoints.ts";

const TYPES = "sentence_transformers";

/**
 * As the MultiVectorEncoder of sentence-transformers 6.2 saves it: the modules that PyLate leaves unsaid are files,
 * markers are prompts, lengths belong to the Transformer.
 */
export function asMultiVectorEncoder(pylateFixture: string): CheckpointCopy {
  const copy = new CheckpointCopy(pylateFixture);
  const settings = copy.read("config_sentence_transformers.json");
  for (const folder of ["2_MultiVectorMask", "3_Normalize"]) mkdirSync(copy.path(folder));
  const tokens = { module_input_name: "token_embeddings", module_output_name: "token_embeddings" };
  return copy
    .set("1_Dense/config.json", tokens)
    .write("2_MultiVectorMask/config.json", {
      skiplist_words: settings.skiplist_words,
      skiplist_tasks: ["document"],
      keep_only_token_ids: null,
    })
    .write("3_Normalize/config.json", tokens)
    .write("modules.json", [
      { path: "", type: `${TYPES}.base.modules.transformer.Transformer` },
      { path: "1_Dense", type: `${TYPES}.base.modules.dense.Dense` },
      {
        path: "2_MultiVectorMask",
        type: `${TYPES}.multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask`,
      },
      { path: "3_Normalize", type: `${TYPES}.base.modules.normalize.Normalize` },
    ])
    .write("sentence_bert_config.json", {
      transformer_task: "feature-extraction",
      modality_config: { text: { method: "forward", method_output_name: "last_hidden_state" } },
      module_output_name: "token_embeddings",
      document_length: settings.document_length,
      query_expansion: {
        strategy: "fixed",
        attend: settings.attend_to_expansion_tokens,
        token: null,
        length: settings.query_length,
      },
    })
    .write("config_sentence_transformers.json", {
      model_type: "MultiVectorEncoder",
      prompts: { query: settings.query_prefix, document: settings.document_prefix },
      default_prompt_name: null,
      similarity_fn_name: null,
    });
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
