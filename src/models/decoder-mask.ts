import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import type { Mask } from "../nn/ragged.ts";
import { parseConfig } from "./config.ts";

const maskFile = z.looseObject({
  architectures: z.array(z.string()).nullish(),
  is_causal: z.boolean().nullish(),
  use_bidirectional_attention: z.boolean().nullish(),
});

/** Ends of the names of classes that run the network as it is, in front of whatever head. */
const PLAIN = ["Model", "ForCausalLM", "ForSequenceClassification", "ForMaskedLM"];

/** Classes that change nothing but the mask. */
const BIDIRECTIONAL = "BidirectionalModel";

/**
 * What a token of a decoder sees, by config.json: all of the text where `is_causal` is false, or where the
 * architecture is the bidirectional one of the family, such as `LlamaBidirectionalModel` (`family`: "Llama"). Throws
 * CheckpointError for any other class, which may mean anything.
 */
export function readDecoderMask(config: unknown, family: string): Mask {
  const file = parseConfig(maskFile, config, "config.json");
  const architecture = file.architectures?.[0] ?? `${family}Model`;
  const known = [...PLAIN, BIDIRECTIONAL].map((end) => family + end);
  if (!known.includes(architecture)) {
    throw new CheckpointError(
      `config.json: architectures: "${architecture}" is not supported (known: ${known.join(", ")})`,
    );
  }
  const bidirectional =
    file.is_causal === false ||
    file.use_bidirectional_attention === true ||
    architecture === family + BIDIRECTIONAL;
  return { kind: bidirectional ? "full" : "causal" };
}
