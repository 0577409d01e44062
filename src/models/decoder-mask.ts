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
 * Whether a token of a decoder sees what follows it, by config.json: where `is_causal` is false or
 * `use_bidirectional_attention` true, or where the architecture is the bidirectional one of the family. `stems`: how
 * the names of its classes begin, "Llama" for `LlamaBidirectionalModel`. Throws CheckpointError for any other class,
 * which may mean anything.
 */
export function readBidirectional(config: unknown, ...stems: readonly string[]): boolean {
  const file = parseConfig(maskFile, config);
  const known = stems.flatMap((stem) => [...PLAIN, BIDIRECTIONAL].map((end) => stem + end));
  const architecture = file.architectures?.[0];
  if (architecture !== undefined && !known.includes(architecture)) {
    throw new CheckpointError(
      `config.json: architectures: "${architecture}" is not supported (known: ${known.join(", ")})`,
    );
  }
  return (
    file.is_causal === false ||
    file.use_bidirectional_attention === true ||
    (architecture?.endsWith(BIDIRECTIONAL) ?? false)
  );
}

/** The mask of a decoder without windows. Throws CheckpointError as `readBidirectional`. */
export function readDecoderMask(config: unknown, stem: string): Mask {
  return { kind: readBidirectional(config, stem) ? "full" : "causal" };
}
