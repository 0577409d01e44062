import * as mx from "../../ffi/index.ts";
import type { Quantized, Tensor } from "../../ffi/index.ts";
import { CheckpointError } from "./error.ts";
import type { LoraAdapter } from "./lora.ts";
import type { TableFile } from "./table-file.ts";
import type { TensorFiles, TensorLocation } from "./tensor-files.ts";

/** The tensors of a base model with a LoRA adapter merged into them. */
export class AdaptedFiles implements TensorFiles {
  readonly locations: ReadonlyMap<string, TensorLocation>;
  readonly #base: TensorFiles;
  readonly #adapter: LoraAdapter;
  /** Layers of the adapter by the name of their matrix in the base. */
  readonly #layerOf: ReadonlyMap<string, string>;
  /** Names of the adapter's tensors by those of the base that they replace, or are added to. */
  readonly #replacements: ReadonlyMap<string, string>;
  readonly #adapted = new Map<string, Tensor>();

  /** What adapted matrices become; undefined: what they were, as all that the network computes with. */
  readonly #dtype: "float32" | undefined;

  /** Throws CheckpointError naming a layer that the base does not have. */
  constructor(base: TensorFiles, adapter: LoraAdapter, computeDtype: "float32" | "stored") {
    this.#base = base;
    this.#dtype = computeDtype === "float32" ? "float32" : undefined;
    this.#adapter = adapter;
    this.#layerOf = new Map(
      adapter.layers.map((layer) => [this.#requireName(`${layer}.weight`), layer]),
    );
    this.#replacements = new Map(
      [...adapter.replacements].map(([name, own]) => [this.#nameInBase(name) ?? name, own]),
    );
    this.locations = this.#locate();
  }

  get path(): string {
    return this.#base.path;
  }

  get storedDtype(): string {
    return this.#base.storedDtype;
  }

  #locate(): Map<string, TensorLocation> {
    const locations = new Map(this.#base.locations);
    for (const name of this.#layerOf.keys()) {
      const { packing: _, ...location } = locations.get(name)!;
      locations.set(name, { ...location, dtype: "F32" });
    }
    for (const [name, own] of this.#replacements) {
      const { dtype, shape, begin, end } = this.#adapter.headers.get(own)!;
      locations.set(name, { file: this.#adapter.path, dtype, shape, byteLength: end - begin });
    }
    return locations;
  }

  tensor(name: string): Tensor | Quantized {
    const own = this.#replacements.get(name);
    if (own !== undefined) return this.#adapter.tensor(own);
    const layer = this.#layerOf.get(name);
    return layer === undefined ? this.#base.tensor(name) : this.#adaptedMatrix(name, layer);
  }

  #adaptedMatrix(name: string, layer: string): Tensor {
    let adapted = this.#adapted.get(name);
    if (adapted === undefined) {
      adapted = mx.scope(() => {
        const stored = this.#base.tensor(name);
        const matrix = stored instanceof mx.Tensor ? stored : mx.dequantize(stored);
        const adapted = this.#adapter.adapt(layer, matrix);
        return mx.keep(mx.astype(adapted, this.#dtype ?? matrix.dtype));
      });
      this.#adapted.set(name, adapted);
    }
    return adapted;
  }

  tableFile(name: string): TableFile | undefined {
    const isOwn = this.#layerOf.has(name) || this.#replacements.has(name);
    return isOwn ? undefined : this.#base.tableFile(name);
  }

  *opened(): Generator<Tensor> {
    yield* this.#base.opened();
    yield* this.#adapter.opened();
    yield* this.#adapted.values();
  }

  #requireName(name: string): string {
    const found = this.#nameInBase(name);
    if (found !== undefined) return found;
    throw new CheckpointError(
      `${this.#adapter.path} adapts "${name}", which the base ${this.#base.path} does not have; they do not belong together`,
    );
  }

  /** Either may put the name of the whole network in front, such as `model.`. */
  #nameInBase(name: string): string | undefined {
    const { locations } = this.#base;
    if (locations.has(name)) return name;
    return [...locations.keys()].find(
      (other) => other.endsWith(`.${name}`) || name.endsWith(`.${other}`),
    );
  }
}
