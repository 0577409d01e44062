import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import { type Activation, activation } from "../nn/activations.ts";
import type { Rope } from "../nn/rope.ts";
import { parseConfig, size } from "./config.ts";
import { type DecoderSizes, readDecoderSizes } from "./decoder-sizes.ts";
import { gemmaLayerKinds, layerKindKeys } from "./gemma-layer.ts";
import { byLayerKind, type LayerKind } from "./layer-kind.ts";
import { readLayerRopes } from "./rope-config.ts";

const TEXT = "config.json: text_config";

const tokenId = z.int().nonnegative().nullish();

const configSchema = z.looseObject({
  architectures: z.tuple([z.literal("EmbeddingGemma2Model")]).nullish(),
  text_config: z.looseObject({}),
  image_token_id: tokenId,
  video_token_id: tokenId,
  audio_token_id: tokenId,
});

const textSchema = z.looseObject({
  ...layerKindKeys,
  hidden_activation: z.string().default("gelu_pytorch_tanh"),
  attention_bias: z.boolean().default(false),
  /** Tokens at this distance are still seen. */
  sliding_window: size.default(512),
  hidden_size_per_layer_input: size,
  embedding_dim: size,
  pad_token_id: z.int().nonnegative().default(0),
  /** By the number of the layer. */
  per_layer_config: z.record(
    z.string().regex(/^\d+$/),
    z.strictObject({
      head_dim: size.multipleOf(2).optional(),
      num_key_value_heads: size.optional(),
    }),
  ),
});

/** What all layers of one kind have in common. */
interface HeadShape {
  readonly headDim: number;
  readonly kvHeads: number;
}

export interface EmbeddingGemma2Shape extends DecoderSizes {
  readonly activation: Activation;
  readonly attentionBias: boolean;
  /** One per layer. */
  readonly kinds: readonly LayerKind[];
  readonly headShapes: Readonly<Record<LayerKind, HeadShape>>;
  readonly ropes: Readonly<Record<LayerKind, Rope>>;
  /** Farthest key that a token of a sliding layer sees. */
  readonly radius: number;
  /** Width of what each layer is given of the token embeddings once more. */
  readonly layerInputSize: number;
  /** Width of the rows that leave the network. */
  readonly outputSize: number;
  /** Tokens that stand for pictures and sounds: as words they are `padId`. */
  readonly placeholders: ReadonlySet<number>;
  readonly padId: number;
}

/** Throws CheckpointError naming a key whose value is missing or not supported. */
export function readEmbeddingGemma2(config: unknown): EmbeddingGemma2Shape {
  const file = parseConfig(configSchema, config);
  const text = parseConfig(textSchema, file.text_config, TEXT);
  const sizes = readDecoderSizes(file.text_config, { headDim: 256, file: TEXT });
  // The last layer sees the whole text whatever the file says.
  const kinds = gemmaLayerKinds(text, sizes.layerCount).with(-1, "full_attention");
  const headShapes = headShapesOf(kinds, sizes, text.per_layer_config);
  const placeholders = [file.image_token_id, file.video_token_id, file.audio_token_id];
  return {
    ...sizes,
    activation: activation(text.hidden_activation, `${TEXT}: hidden_activation`),
    attentionBias: text.attention_bias,
    kinds,
    headShapes,
    ropes: readLayerRopes(file.text_config, {
      headDims: byLayerKind((kind) => headShapes[kind].headDim),
      positions: sizes.maxPositions,
      file: TEXT,
    }),
    radius: text.sliding_window,
    layerInputSize: text.hidden_size_per_layer_input,
    outputSize: text.embedding_dim,
    placeholders: new Set(placeholders.filter((id) => id != null)),
    padId: text.pad_token_id,
  };
}

function headShapesOf(
  kinds: readonly LayerKind[],
  { headDim, kvHeads, heads }: DecoderSizes,
  perLayer: z.output<typeof textSchema>["per_layer_config"],
): Record<LayerKind, HeadShape> {
  const shapes = byLayerKind((): HeadShape => ({ headDim, kvHeads }));
  const shapeOf = (layer: number): HeadShape => ({
    headDim: perLayer[layer]?.head_dim ?? headDim,
    kvHeads: perLayer[layer]?.num_key_value_heads ?? kvHeads,
  });
  kinds.forEach((kind, layer) => {
    const own = shapeOf(layer);
    const first = shapeOf(kinds.indexOf(kind));
    shapes[kind] = own;
    if (heads % own.kvHeads !== 0) {
      throw new CheckpointError(
        `${TEXT}: per_layer_config.${layer}: num_key_value_heads ${own.kvHeads} does not divide num_attention_heads ${heads}`,
      );
    }
    if (own.headDim !== first.headDim || own.kvHeads !== first.kvHeads) {
      throw new CheckpointError(
        `${TEXT}: per_layer_config.${layer}: ${kind} layers with different heads are not supported`,
      );
    }
  });
  return shapes;
}
