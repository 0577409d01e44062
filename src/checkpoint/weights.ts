import * as mx from "../../ffi/index.ts";
import type { Quantized, Tensor } from "../../ffi/index.ts";
import { reasonOf } from "../native/thrown.ts";
import { CheckpointError } from "./error.ts";
import type { TableFile } from "./table-file.ts";
import type { TensorFiles } from "./tensor-files.ts";
import { FLOATS, SafetensorsFiles } from "./weight-files.ts";

export interface WeightsOptions {
  /**
   * Names that a checkpoint may put in front of every tensor of the network, such as `bert.`, the most specific
   * first. The first one that occurs in the files is used; tensors outside of it keep their full names.
   */
  readonly prefixes: readonly string[];
  /** float32 converts all tensors; stored leaves them as they are. */
  readonly computeDtype: "float32" | "stored";
  /**
   * Whether quantised matrices stay so for those who take them by `takeMatrix`, given the bytes of all tensors in
   * f32. Absent: they are de-quantised. Asked only where there are any.
   */
  readonly keepQuantized?: ((float32Bytes: number) => boolean) | undefined;
}

/** What is told of the weights of a loaded model. */
export interface WeightFacts {
  /** The type that most bytes are stored in: F32, F16, BF16, Q8_0, 4-bit … */
  readonly storedDtype: string;
  /** What the log says once about how they were loaded. */
  readonly loadNotes: readonly string[];
}

const BYTES_PER_F32 = 4;

/** A tensor or a quantised matrix, and what the files call it. */
interface Found {
  readonly storedName: string;
  readonly stored: Tensor | Quantized;
}

interface DerivedTensor {
  readonly tensor: Tensor;
  readonly sources: readonly Tensor[];
}

/**
 * The tensors of one checkpoint, by name. A loader takes what it needs and then closes: closing reads everything that
 * was taken from disk in one go and forgets the rest, which is never read. Taken tensors belong to the taker.
 */
export class Weights {
  /** What tensors are converted to. */
  readonly computeDtype: WeightsOptions["computeDtype"];
  /** Whether some matrices are stored quantised. */
  readonly areQuantized: boolean;
  /** Whether `takeMatrix` gives quantised matrices. */
  readonly stayQuantized: boolean;
  readonly #files: TensorFiles;
  readonly #prefix: string;
  readonly #taken = new Map<string, Tensor>();
  readonly #derived: DerivedTensor[] = [];
  #closed = false;

  constructor(files: TensorFiles, options: WeightsOptions) {
    this.#files = files;
    this.computeDtype = options.computeDtype;
    this.areQuantized = [...files.locations.values()].some(({ packing }) => packing);
    this.stayQuantized = this.areQuantized && (options.keepQuantized?.(this.float32Bytes) ?? false);
    const names = [...files.locations.keys()];
    this.#prefix =
      options.prefixes.find((prefix) => names.some((name) => name.startsWith(prefix))) ?? "";
  }

  /** Those of a directory, all dense. Nothing is read yet. Throws CheckpointError naming a missing or damaged file. */
  static open(directory: string, options: WeightsOptions): Weights {
    return new Weights(new SafetensorsFiles(directory), options);
  }

  /** Where the files are, to be named in errors. */
  get path(): string {
    return this.#files.path;
  }

  /** The type that most bytes are stored in: F32, F16, BF16, Q8_0 … */
  get storedDtype(): string {
    return this.#files.storedDtype;
  }

  /** Bytes of all tensors if they were dense and in f32. */
  get float32Bytes(): number {
    let total = 0;
    for (const { shape } of this.#files.locations.values()) {
      total += shape.reduce((product, size) => product * size, BYTES_PER_F32);
    }
    return total;
  }

  has(name: string): boolean {
    return this.#storedName(name) !== undefined;
  }

  /**
   * A tensor without the files' prefix in its name, outside of every scope, evaluated once the weights are closed.
   * A quantised matrix is de-quantised. LayerNorm's `weight` and `bias` are also found under their old names `gamma`
   * and `beta`. Throws CheckpointError where the tensor is missing, has another shape than `shape`, or is not of
   * floating-point numbers.
   */
  take(name: string, shape?: readonly number[]): Tensor {
    const tensor = this.takeOptional(name, shape);
    return tensor ?? this.#missing(name);
  }

  /** Like take; undefined where the tensor is missing. */
  takeOptional(name: string, shape?: readonly number[]): Tensor | undefined {
    const found = this.#find(name, shape);
    if (found === undefined) return undefined;
    return this.#take(found.storedName, () => this.#dense(found.stored));
  }

  /** Like take, for layers that can compute with quantised matrices: where it `staysQuantized`, as it is stored. */
  takeMatrix(name: string, shape: readonly number[]): Tensor | Quantized {
    const { storedName, stored } = this.#find(name, shape) ?? this.#missing(name);
    if (isDense(stored) || !this.stayQuantized) return this.take(name, shape);
    partsOf(stored).forEach((part, i) => this.#take(`${storedName} ${i}`, () => part));
    return stored;
  }

  /** Whether `takeMatrix` gives this matrix as it is stored, quantised. */
  staysQuantized(name: string): boolean {
    const storedName = this.#storedName(name);
    if (storedName === undefined || !this.stayQuantized) return false;
    return this.#files.locations.get(storedName)?.packing !== undefined;
  }

  /** These rows of a matrix [rows, width], in f32 [indices, width]. Otherwise like take; the matrix is not kept. */
  takeRows(name: string, shape: readonly number[], indices: Int32Array): Tensor {
    const { storedName, stored } = this.#find(name, shape) ?? this.#missing(name);
    const inFile = this.#tableFile(storedName);
    if (inFile) return this.#derive([], () => inFile.take(indices));
    const matrix = this.#taken.get(storedName) ?? stored;
    return this.#derive([matrix], () => {
      const rows = mx.fromInt32(indices, [indices.length]);
      const found = isDense(matrix) ? mx.take(matrix, rows, 0) : mx.dequantizeRows(matrix, rows);
      return mx.astype(found, "float32");
    });
  }

  /**
   * Like takeMatrix, for a table of which a forward reads few rows. On the CPU a large one stays in its file where it
   * can, so that rows which never occur take no memory.
   */
  takeTable(
    name: string,
    shape: readonly [rows: number, width: number],
  ): Tensor | Quantized | TableFile {
    const found = this.#find(name, shape);
    return (found && this.#tableFile(found.storedName)) ?? this.takeMatrix(name, shape);
  }

  #tableFile(storedName: string): TableFile | undefined {
    const wanted = this.computeDtype === "float32" && !this.#taken.has(storedName);
    return wanted ? this.#files.tableFile(storedName) : undefined;
  }

  /**
   * What `make` makes of stored tensors, all of the shape `shape`, such as another layout. It takes their place:
   * closing evaluates it and frees those that are not taken as well, one after the other. Otherwise like take.
   */
  derive(
    names: readonly string[],
    shape: readonly number[],
    make: (sources: readonly Tensor[]) => Tensor,
  ): Tensor {
    const sources = names.map((name) => this.#find(name, shape)?.stored ?? this.#missing(name));
    return this.#derive(sources, () => make(sources.map((stored) => this.#dense(stored))));
  }

  #derive(sources: readonly (Tensor | Quantized)[], make: () => Tensor): Tensor {
    const tensor = mx.scope(() => mx.keep(make()));
    // Where the files hold it as it is wanted, the source is the result.
    const parts = sources.flatMap(partsOf).filter((source) => source !== tensor);
    this.#derived.push({ tensor, sources: parts });
    return tensor;
  }

  #take(key: string, make: () => Tensor): Tensor {
    let tensor = this.#taken.get(key);
    if (tensor === undefined) {
      tensor = mx.scope(() => mx.keep(make()));
      this.#taken.set(key, tensor);
    }
    return tensor;
  }

  #find(name: string, shape: readonly number[] | undefined): Found | undefined {
    if (this.#closed) throw new Error(`tensor "${name}" was taken after the weights were closed`);
    const storedName = this.#storedName(name);
    const location = storedName === undefined ? undefined : this.#files.locations.get(storedName);
    if (storedName === undefined || location === undefined) return undefined;
    if (shape !== undefined && !sameShape(shape, location.shape)) {
      throw new CheckpointError(
        `tensor "${storedName}" in ${location.file} has the shape [${location.shape.join(", ")}], expected is [${shape.join(", ")}]; config.json and weights do not belong together`,
      );
    }
    if (!location.packing && !FLOATS.has(location.dtype)) {
      throw new CheckpointError(
        `tensor "${storedName}" in ${location.file} is of the type ${location.dtype}, expected are floating-point numbers (${[...FLOATS].join(", ")})`,
      );
    }
    return { storedName, stored: this.#files.tensor(storedName) };
  }

  #missing(name: string): never {
    throw new CheckpointError(
      `tensor "${name}" is missing in ${this.path}; the checkpoint is incomplete or of another architecture`,
    );
  }

  /** Reads every taken tensor from disk and frees the others. Throws CheckpointError where reading fails. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      mx.evaluate(...this.#taken.values());
      this.#evaluateDerived();
    } catch (error) {
      throw new CheckpointError(`the tensors in ${this.path} cannot be read: ${reasonOf(error)}`, {
        cause: error,
      });
    } finally {
      this.#freeUntaken();
    }
  }

  #evaluateDerived(): void {
    const taken = new Set(this.#taken.values());
    for (const { tensor, sources } of this.#derived) {
      mx.evaluate(tensor);
      for (const source of sources) if (!taken.has(source)) source.free();
    }
  }

  #freeUntaken(): void {
    const taken = new Set(this.#taken.values());
    for (const { tensor } of this.#derived) taken.add(tensor);
    for (const tensor of this.#files.opened()) if (!taken.has(tensor)) tensor.free();
    // What was freed is of no use to the forward passes.
    mx.clearCache();
  }

  #storedName(name: string): string | undefined {
    const oldName = name.replace(/\.weight$/, ".gamma").replace(/\.bias$/, ".beta");
    const candidates = [this.#prefix + name, name, this.#prefix + oldName, oldName];
    return candidates.find((candidate) => this.#files.locations.has(candidate));
  }

  #dense(stored: Tensor | Quantized): Tensor {
    return this.#convert(isDense(stored) ? stored : mx.dequantize(stored));
  }

  #convert(stored: Tensor): Tensor {
    if (this.computeDtype === "stored" || stored.dtype === "float32") return stored;
    return mx.astype(stored, "float32");
  }
}

function isDense(stored: Tensor | Quantized): stored is Tensor {
  return stored instanceof mx.Tensor;
}

function partsOf(stored: Tensor | Quantized): readonly Tensor[] {
  if (isDense(stored)) return [stored];
  const { packed, scales, biases } = stored;
  return biases ? [packed, scales, biases] : [packed, scales];
}

function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, axis) => size === b[axis]);
}
