import { z } from "zod";
import type { TokenizerFile } from "./tokenizer-file.ts";

const step = z.looseObject({ type: z.string() });
const sequence = z.looseObject({ type: z.literal("Sequence"), normalizers: z.array(step) });

/**
 * A tokenizer that lower-cases its texts before all else, unless its normalizer has such a step of its own: what
 * sentence-transformers makes of `do_lower_case`.
 */
export function lowerCasing(file: TokenizerFile): TokenizerFile {
  const steps = stepsOf(file.normalizer);
  if (steps.some(({ type }) => type === "Lowercase")) return file;
  const normalizers = [{ type: "Lowercase" }, ...steps];
  return { ...file, normalizer: { type: "Sequence", normalizers } };
}

function stepsOf(normalizer: TokenizerFile["normalizer"]): readonly z.output<typeof step>[] {
  if (normalizer === null) return [];
  const parsed = sequence.safeParse(normalizer);
  return parsed.success ? parsed.data.normalizers : [normalizer];
}
