import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import { attention, type AttentionShape, type RowAttention } from "../nn/attention.ts";
import type { RaggedBatch } from "../nn/ragged.ts";
import { type Rope, rotations, type Rotations } from "../nn/rope.ts";
import { RowLayout } from "../nn/row-layout.ts";

/** An entry of `layer_types`. */
export const layerKind = z.enum(["full_attention", "sliding_attention"]);

/** Whether a layer's tokens see the whole row or a window around themselves. */
export type LayerKind = z.output<typeof layerKind>;

export function byLayerKind<T>(of: (kind: LayerKind) => T): Record<LayerKind, T> {
  return { full_attention: of("full_attention"), sliding_attention: of("sliding_attention") };
}

/**
 * One per layer: the `stated` ones, else by the number of the layer. Throws CheckpointError where there is another
 * number of them than of layers.
 */
export function layerKinds(
  stated: readonly LayerKind[] | null | undefined,
  layerCount: number,
  seesAll: (layer: number) => boolean,
): readonly LayerKind[] {
  if (!stated) {
    return Array.from({ length: layerCount }, (_, layer) =>
      seesAll(layer) ? "full_attention" : "sliding_attention",
    );
  }
  if (stated.length === layerCount) return stated;
  throw new CheckpointError(
    `config.json: layer_types: ${stated.length} entries for ${layerCount} layers`,
  );
}

/** What the layers of one kind need in a forward. */
export interface Surroundings {
  readonly rotate: Rotations;
  readonly attend: RowAttention;
}

/** Built once per forward; `shapeOf` tells how the layers of a kind turn and attend. */
export function surroundingsOf(
  batch: RaggedBatch,
  shapeOf: (kind: LayerKind) => AttentionShape & { readonly rope: Rope },
): Record<LayerKind, Surroundings> {
  const layout = new RowLayout(batch);
  return byLayerKind((kind) => {
    const { rope, ...shape } = shapeOf(kind);
    return { rotate: rotations(batch.positions, rope), attend: attention(layout, shape) };
  });
}
