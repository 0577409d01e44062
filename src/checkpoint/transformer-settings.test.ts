import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../test/fixtures/fixtures.ts";
import { CheckpointError } from "./error.ts";
import { readTransformerSettings, type TransformerTask } from "./transformer-settings.ts";

type Files = Readonly<Record<string, object>>;

function read(files: Files, task: TransformerTask = "feature-extraction") {
  const directory = temporaryDirectory("settings");
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(directory, name), JSON.stringify(content));
  }
  return readTransformerSettings(directory, { task });
}

const ofBert = (content: object) => ({ "sentence_bert_config.json": content });

test.each(["bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"])(
  "sentence_%s_config.json is read",
  (name) => {
    const file = { max_seq_length: 17, do_lower_case: true };
    expect(read({ [`sentence_${name}_config.json`]: file })).toEqual({
      maxLength: 17,
      lowerCase: true,
    });
  },
);

test("the first file that says anything counts", () => {
  const roberta = { "sentence_roberta_config.json": { max_seq_length: 9 } };
  expect(read({ ...roberta, ...ofBert({ max_seq_length: 8 }) }).maxLength).toBe(8);
  expect(read({ ...roberta, ...ofBert({}) }).maxLength).toBe(9);
  expect(read({})).toEqual({ lowerCase: false });
});

test("settings that change nothing are accepted", () => {
  const settings = {
    max_seq_length: null,
    do_lower_case: false,
    transformer_task: "feature-extraction",
    modality_config: {
      text: { method: "forward", method_output_name: "last_hidden_state" },
      message: { method: "forward", method_output_name: "last_hidden_state", format: "flat" },
    },
    module_output_name: "token_embeddings",
    processing_kwargs: { chat_template: { add_generation_prompt: true } },
    unpad_inputs: false,
    query_length: null,
    model_args: { torch_dtype: "float16", add_pooling_layer: false },
    tokenizer_args: { padding_side: "left" },
    config_args: {},
  };
  expect(read(ofBert(settings))).toEqual({ lowerCase: false });
});

test("a limit among the arguments of the tokenizer beats the older key", () => {
  for (const key of ["tokenizer_args", "processor_kwargs"]) {
    const settings = { max_seq_length: 5, [key]: { model_max_length: 7 } };
    expect(read(ofBert(settings)).maxLength).toBe(7);
  }
});

test("a classifier's task is the task of a classifier", () => {
  const settings = {
    transformer_task: "sequence-classification",
    modality_config: { text: { method: "forward", method_output_name: "logits" } },
    module_output_name: "scores",
  };
  expect(read(ofBert(settings), "sequence-classification")).toEqual({ lowerCase: false });
  expect(() => read(ofBert(settings))).toThrow(/transformer_task/);
});

test.each([
  ["made_up", { made_up: 1 }],
  ["transformer_task", { transformer_task: "fill-mask" }],
  [
    "modality_config.text.method_output_name",
    {
      modality_config: { text: { method: "forward", method_output_name: "pooler_output" } },
    },
  ],
  [
    "image",
    {
      modality_config: {
        text: { method: "forward", method_output_name: "last_hidden_state" },
        image: {},
      },
    },
  ],
  ["module_output_name", { module_output_name: "sentence_embedding" }],
  ["text", { processing_kwargs: { text: { max_length: 4 } } }],
  ["query_length", { query_length: 32 }],
  ["query_expansion", { query_expansion: {} }],
  ["tokenizer_name_or_path", { tokenizer_name_or_path: "other" }],
  ["num_labels", { config_args: { num_labels: 2 } }],
  ["is_decoder", { config_kwargs: { is_decoder: true } }],
  ["quantization_config", { model_args: { quantization_config: {} } }],
  ["do_lower_case", { tokenizer_args: { do_lower_case: true } }],
  ["tokenizer_args.truncation_side", { tokenizer_args: { truncation_side: "left" } }],
  ["max_seq_length", { max_seq_length: -1 }],
  ["do_lower_case", { do_lower_case: "yes" }],
])("%s is refused by name in %j", (name, settings) => {
  expect(() => read(ofBert(settings))).toThrow(CheckpointError);
  expect(() => read(ofBert(settings))).toThrow(
    new RegExp(`sentence_bert_config\\.json: .*\\b${name.replaceAll(".", "\\.")}\\b`),
  );
});
