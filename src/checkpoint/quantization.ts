import { z } from "zod";
import type { Packing, QuantizationMode } from "../../ffi/index.ts";
import { CheckpointError } from "./error.ts";
import { checkJson } from "./json-file.ts";

/** The packings that MLX has, by mode; the first of each list is what MLX takes where nothing is said. */
const PACKINGS: Readonly<
  Record<
    QuantizationMode,
    { readonly groupSizes: readonly number[]; readonly bits: readonly number[] }
  >
> = {
  affine: { groupSizes: [64, 32, 128], bits: [4, 2, 3, 5, 6, 8] },
  mxfp4: { groupSizes: [32], bits: [4] },
  nvfp4: { groupSizes: [16], bits: [4] },
  mxfp8: { groupSizes: [32], bits: [8] },
};

const modes = Object.keys(PACKINGS).join(", ");
const mode = z.enum(["affine", "mxfp4", "nvfp4", "mxfp8"], {
  error: ({ input }) => `"${input}" is not a known mode (${modes})`,
});

/** Nothing is inherited by the entry of a layer: what it leaves out is MLX's default. */
export const packing = z
  .looseObject({
    mode: mode.default("affine"),
    group_size: z.number().nullish(),
    bits: z.number().nullish(),
    quantize_input: z.literal(false).nullish(),
  })
  .transform(({ mode, group_size, bits }, { addIssue }): Packing => {
    const known = PACKINGS[mode];
    const groupSize = group_size ?? known.groupSizes[0]!;
    const width = bits ?? known.bits[0]!;
    const check = (key: string, value: number, choices: readonly number[]) => {
      if (choices.includes(value)) return;
      const list = [...choices].sort((a, b) => a - b).join(", ");
      addIssue({
        code: "custom",
        path: [key],
        message: `${value} is not one of ${list} (${mode})`,
      });
    };
    check("group_size", groupSize, known.groupSizes);
    check("bits", width, known.bits);
    return { groupSize, bits: width, mode };
  });

/** Keys of the object that are no names of layers. */
const OWN_KEYS = new Set(["group_size", "bits", "mode", "quantize_input", "quant_method"]);

/** How the layers of a checkpoint are packed, as its config.json says. */
export interface Quantization {
  /** Of a layer by its stored name, without `.weight`; undefined where it is said to be dense. */
  packingOf(layer: string): Packing | undefined;
}

/**
 * Reads `quantization`, or its copy `quantization_config`, as MLX writes them; undefined for dense checkpoints. Throws
 * CheckpointError naming a method, mode, number of bits or group size that is not known.
 */
export function readQuantization(
  config: Readonly<Record<string, unknown>>,
): Quantization | undefined {
  const key = ["quantization", "quantization_config"].find((name) => config[name] != null);
  if (key === undefined) return undefined;
  const place = `config.json: ${key}`;
  const settings = checkJson(place, config[key], z.record(z.string(), z.unknown()));
  if (settings["quant_method"] != null && settings["quant_method"] !== "mlx") {
    throw new CheckpointError(
      `${place}.quant_method: "${settings["quant_method"]}" is not supported; use a checkpoint in f32, f16 or bf16, or one quantised by MLX`,
    );
  }
  const common = checkJson(place, settings, packing);
  const layers = new Map<string, boolean | Packing>(
    Object.entries(settings)
      .filter(([name]) => !OWN_KEYS.has(name))
      .map(([name, setting]) => [
        name,
        typeof setting === "boolean" ? setting : checkJson(`${place}.${name}`, setting, packing),
      ]),
  );
  return {
    packingOf(layer) {
      const own = layers.get(layer) ?? true;
      return own === true ? common : own || undefined;
    },
  };
}

/** `quantization` of config.json: how all layers are packed, and which are dense. */
export function writtenPacking(
  { groupSize, bits, mode }: Packing,
  dense: readonly string[],
): Record<string, unknown> {
  const layers = Object.fromEntries(dense.map((layer) => [layer, false]));
  return { group_size: groupSize, bits, mode, ...layers };
}

/** How a packing is called: `4-bit`, or the mode where that says it all. */
export function packingName({ bits, mode }: Packing): string {
  return mode === "affine" ? `${bits}-bit` : mode;
}
