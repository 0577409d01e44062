/** Names in a model's directory that are looked for by those who download it and by those who read it. */

/** All weights in one file. */
export const SINGLE_WEIGHTS = "model.safetensors";

/** Which shard holds which tensor. */
export const WEIGHTS_INDEX = "model.safetensors.index.json";

/** What makes a directory that of a LoRA adapter. */
export const ADAPTER_CONFIG = "adapter_config.json";

export const ADAPTER_WEIGHTS = "adapter_model.safetensors";

/** Where the pooling lies in repositories without modules.json. */
export const POOLING_FOLDER = "1_Pooling";
