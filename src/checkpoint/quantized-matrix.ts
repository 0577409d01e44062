import type { Packing } from "../../ffi/index.ts";
import { CheckpointError } from "./error.ts";
import { packingName, type Quantization } from "./quantization.ts";
import type { TensorLocation } from "./tensor-files.ts";

/** A matrix that is stored as several tensors. */
export interface QuantizedMatrix {
  readonly location: TensorLocation & { readonly packing: Packing };
  /** Names of `.weight`, `.scales` and, where the packing is affine, `.biases`. */
  readonly parts: readonly string[];
}

const BITS_PER_WORD = 32;

type Locations = ReadonlyMap<string, TensorLocation>;

/**
 * The quantised matrices by the name of their `.weight`: each layer that has `.scales`. Throws CheckpointError naming a
 * part that is missing or does not fit the others and config.json.
 */
export function findQuantized(
  stored: Locations,
  quantization: Quantization | undefined,
): Map<string, QuantizedMatrix> {
  const found = new Map<string, QuantizedMatrix>();
  for (const [name, { file, dtype }] of stored) {
    const layer = name.replace(/\.(weight|scales)$/, "");
    const [weight, scales] = [`${layer}.weight`, `${layer}.scales`];
    if (name === scales) {
      if (!stored.has(weight)) throw notWhole(name, weight, file);
      found.set(weight, matrixOf(layer, stored, packingOf(layer, quantization)));
    } else if (name === weight && dtype === "U32" && quantization && !stored.has(scales)) {
      throw notWhole(name, scales, file);
    }
  }
  return found;
}

function packingOf(layer: string, quantization: Quantization | undefined): Packing {
  const packing = quantization?.packingOf(layer);
  if (packing) return packing;
  const said = quantization ? `"quantization" says that "${layer}" is dense` : `no "quantization"`;
  throw new CheckpointError(
    `config.json: ${said}, but "${layer}" has scales; config.json and weights do not belong together`,
  );
}

function matrixOf(layer: string, stored: Locations, packing: Packing): QuantizedMatrix {
  const { groupSize, bits, mode } = packing;
  const scales = stored.get(`${layer}.scales`)!;
  const rows = scales.shape.slice(0, -1);
  const columns = (scales.shape.at(-1) ?? 0) * groupSize;
  const shapes = [
    ["weight", [...rows, (columns * bits) / BITS_PER_WORD]],
    ["scales", scales.shape],
    ...(mode === "affine" ? ([["biases", scales.shape]] as const) : []),
  ] as const;
  const parts = shapes.map(([part, shape]) => {
    const name = `${layer}.${part}`;
    const location = stored.get(name);
    if (!location) throw notWhole(`${layer}.scales`, name, scales.file);
    if (shape.join() !== location.shape.join() || !typesOf(part, mode).includes(location.dtype)) {
      throw misfit(name, location, packing, scales);
    }
    return { name, ...location };
  });
  return {
    location: {
      file: scales.file,
      dtype: packingName(packing),
      shape: [...rows, columns],
      byteLength: parts.reduce((sum, { byteLength }) => sum + byteLength, 0),
      packing,
    },
    parts: parts.map(({ name }) => name),
  };
}

function typesOf(part: "weight" | "scales" | "biases", mode: Packing["mode"]): readonly string[] {
  if (part === "weight") return ["U32"];
  return mode === "affine" ? ["F16", "BF16", "F32"] : ["U8"];
}

function misfit(
  name: string,
  { file, dtype, shape }: TensorLocation,
  { bits, groupSize, mode }: Packing,
  scales: TensorLocation,
): CheckpointError {
  return new CheckpointError(
    `tensor "${name}" in ${file} is ${dtype} [${shape.join(", ")}]; config.json says ${bits} bits in groups of ${groupSize} (${mode}), the scales are ${scales.dtype} [${scales.shape.join(", ")}]: they do not belong together`,
  );
}

function notWhole(name: string, part: string, file: string): CheckpointError {
  return new CheckpointError(
    `tensor "${part}" is missing, though "${name}" in ${file} needs it: the quantised layer is incomplete; download it again`,
  );
}
