import { CheckpointError } from "../error.ts";
import type { Architecture } from "./architecture.ts";
import type { GgufHeader, GgufTensor } from "./header.ts";

export interface NamedTensor extends GgufTensor {
  /** The file's name for it. */
  readonly name: string;
  /** Added to every value. */
  readonly offset: number;
}

/** The tensors of a file by the family's names. Throws CheckpointError naming one that the architecture does not have. */
export function byFamilyName(
  { path, tensors }: GgufHeader,
  { name: architecture, layers, offsets = {} }: Architecture,
): ReadonlyMap<string, NamedTensor> {
  return new Map(
    [...tensors].map(([name, tensor]) => {
      const [, layer, part] = /^(.*)\.(weight|bias)$/.exec(name) ?? [];
      const number = /^blk\.(\d+)\./.exec(name)?.[1];
      const key = layer?.replace(/^blk\.\d+\./, "blk.N.") ?? "";
      const familyLayer = layers[key];
      if (familyLayer === undefined) {
        throw new CheckpointError(
          `${path}: tensor "${name}" is not one of the GGUF architecture "${architecture}" as it is known here`,
        );
      }
      const familyName = `${familyLayer.replace("N", number ?? "N")}.${part}`;
      return [familyName, { ...tensor, name, offset: offsets[key] ?? 0 }];
    }),
  );
}
