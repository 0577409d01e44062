import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import { parseConfig } from "./config.ts";

const declaration = z.object({
  sentence_transformers: z.looseObject({ activation_fn: z.string().nullish() }).nullish(),
  sbert_ce_default_activation_function: z.string().nullish(),
});

/** Last part of the name of a torch module, such as `torch.nn.modules.activation.Sigmoid`. */
const KNOWN = ["Sigmoid", "Identity"];

/**
 * Cross-encoders may declare what sentence-transformers does to a logit. We always give both: the sigmoid of it as
 * the score and the logit itself as the raw score, which is what `Identity` asks for. Anything else would be neither:
 * throws CheckpointError.
 */
export function requireKnownActivation(config: unknown): void {
  const declared = parseConfig(declaration, config);
  const settings = {
    "sentence_transformers.activation_fn": declared.sentence_transformers?.activation_fn,
    sbert_ce_default_activation_function: declared.sbert_ce_default_activation_function,
  };
  for (const [setting, name] of Object.entries(settings)) {
    if (name == null || KNOWN.includes(name.split(".").at(-1)!)) continue;
    throw new CheckpointError(
      `config.json: ${setting}: scores by "${name}" are not supported (known: ${KNOWN.join(", ")})`,
    );
  }
}
