import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import { ADAPTER_WEIGHTS } from "../hub/file-names.ts";
import { CheckpointError } from "./error.ts";
import { type LoraSettings, readLoraConfig } from "./lora-config.ts";
import { readSafetensorsHeader, type StoredTensor } from "./safetensors-header.ts";

/** What peft puts in front of the names of the base, and within those of layers that it wraps. */
const WRAPPERS = /^base_model\.model\.|\.base_layer(?=\.)|\.modules_to_save\.default(?=\.)/g;
const PART =
  /^(.+)\.(?:(lora_[AB])\.weight|(lora_embedding_[AB])|lora_magnitude_vector(?:\.weight)?)$/;

/** What an adapter adds to the matrix of one layer. Names are those in the adapter's file. */
interface LayerParts {
  /** A [rank, inputs] and B [outputs, rank]; of a table A [rank, rows] and B [width, rank]. */
  a?: string;
  b?: string;
  isTable?: boolean;
  /** [outputs], with DoRA. */
  magnitude?: string;
}

/** A LoRA adapter of peft: changes of matrices, and whole tensors in place of the base's. */
export class LoraAdapter {
  readonly path: string;
  /** Tensors that replace those of the base, or are added to them, by their name there: their name here. */
  readonly replacements = new Map<string, string>();
  readonly headers: ReadonlyMap<string, StoredTensor>;
  readonly #layers = new Map<string, LayerParts>();
  readonly #settings: LoraSettings;
  #opened: Map<string, Tensor> | undefined;

  /** Nothing of the tensors is read yet. Throws CheckpointError naming a setting or a tensor that is not known. */
  constructor(directory: string) {
    this.path = join(directory, ADAPTER_WEIGHTS);
    this.#settings = readLoraConfig(directory);
    this.headers = readSafetensorsHeader(this.path);
    for (const name of this.headers.keys()) this.#sort(name);
    for (const [layer, parts] of this.#layers) this.#requireWhole(layer, parts);
  }

  #sort(name: string): void {
    const plain = name.replaceAll(WRAPPERS, "");
    const [, layer, matrix, table] = PART.exec(plain) ?? [];
    if (layer === undefined) {
      if (plain.includes("lora_")) throw this.#unknown(name);
      this.replacements.set(plain, name);
      return;
    }
    const parts = this.#layers.get(layer) ?? {};
    this.#layers.set(layer, parts);
    const kind = matrix ?? table;
    if (kind === undefined) parts.magnitude = name;
    else if (kind.endsWith("A")) parts.a = name;
    else parts.b = name;
    if (table !== undefined) parts.isTable = true;
  }

  #requireWhole(layer: string, { a, b, isTable, magnitude }: LayerParts): void {
    const { usesDora } = this.#settings;
    if (a === undefined || b === undefined || (usesDora && magnitude === undefined)) {
      throw new CheckpointError(
        `${this.path}: the adapter of "${layer}" is incomplete; download it again`,
      );
    }
    const strange = usesDora ? isTable : magnitude !== undefined;
    if (strange) throw this.#unknown(magnitude ?? a);
  }

  #unknown(name: string): CheckpointError {
    return new CheckpointError(
      `${this.path}: tensor "${name}" is not supported; merge the adapter into its base with peft`,
    );
  }

  /** Names of the layers whose matrices it changes. */
  get layers(): readonly string[] {
    return [...this.#layers.keys()];
  }

  /** The matrix [outputs, inputs] of a layer once adapted, in f32. Throws CheckpointError where the shapes do not fit. */
  adapt(layer: string, matrix: Tensor): Tensor {
    const { a, b, isTable, magnitude } = this.#layers.get(layer)!;
    const [first, second] = [this.#float32(a!), this.#float32(b!)];
    const rank = first.shape[0] ?? 0;
    const product = isTable ? [first.shape[1], second.shape[0]] : [second.shape[0], first.shape[1]];
    if (product.join() !== matrix.shape.join() || second.shape[1] !== rank) {
      throw new CheckpointError(
        `${this.path}: the adapter of "${layer}" is for a matrix of [${product.join(", ")}], the base has [${matrix.shape.join(", ")}]; they do not belong together`,
      );
    }
    // of a table [rows, width]: Aᵀ·Bᵀ
    const change = isTable
      ? mx.matmul(mx.transpose(first), mx.transpose(second))
      : mx.matmul(second, first);
    const scale = mx.scalar(this.#settings.scale(layer, rank));
    const adapted = mx.add(mx.astype(matrix, "float32"), mx.multiply(change, scale));
    return magnitude === undefined ? adapted : withLengths(adapted, this.#float32(magnitude));
  }

  /** A tensor as it is stored, outside of every scope. */
  tensor(name: string): Tensor {
    this.#opened ??= mx.keep(mx.loadSafetensors(this.path).tensors);
    return this.#opened.get(name)!;
  }

  opened(): Iterable<Tensor> {
    return this.#opened?.values() ?? [];
  }

  #float32(name: string): Tensor {
    return mx.astype(this.tensor(name), "float32");
  }
}

/** Each row of a matrix [N, K] at the length that `lengths` [N] gives it. */
function withLengths(matrix: Tensor, lengths: Tensor): Tensor {
  const norms = mx.sqrt(mx.sum(mx.square(matrix), 1, true));
  return mx.multiply(matrix, mx.divide(mx.reshape(lengths, [-1, 1]), norms));
}
