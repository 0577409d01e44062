import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import { size } from "./config.ts";

/** An entry of `layer_types`. */
export const layerKind = z.enum(["full_attention", "sliding_attention"]);

/** Whether a layer's tokens see the whole row or a window around themselves. */
export type LayerKind = z.output<typeof layerKind>;

/** Keys of config.json that say which layers of a Gemma see a window only. */
export const layerKindKeys = {
  layer_types: z.array(layerKind).nullish(),
  /** Without layer_types: one layer in so many sees the whole text, the last of them. */
  sliding_window_pattern: size.default(6),
};

/** One per layer. Throws CheckpointError where `layer_types` has another number of them. */
export function gemmaLayerKinds(
  stated: z.output<z.ZodObject<typeof layerKindKeys>>,
  layerCount: number,
): readonly LayerKind[] {
  const { layer_types: kinds, sliding_window_pattern: pattern } = stated;
  if (!kinds) {
    return Array.from({ length: layerCount }, (_, layer) =>
      (layer + 1) % pattern === 0 ? "full_attention" : "sliding_attention",
    );
  }
  if (kinds.length === layerCount) return kinds;
  throw new CheckpointError(
    `config.json: layer_types: ${kinds.length} entries for ${layerCount} layers`,
  );
}
