import { z } from "zod";

/** An entry of `layer_types`. */
export const layerKind = z.enum(["full_attention", "sliding_attention"]);

/** Whether a layer's tokens see the whole row or a window around themselves. */
export type LayerKind = z.output<typeof layerKind>;
