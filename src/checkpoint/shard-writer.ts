import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import { SINGLE_WEIGHTS, WEIGHTS_INDEX } from "../hub/file-names.ts";

/** As mlx-lm makes them. */
const MAX_SHARD_BYTES = 5e9;

/**
 * Writes tensors to model.safetensors or, where they are many, to shards with an index. The names of shards tell how
 * many there are, so they get them once all are written.
 */
export class ShardWriter {
  readonly #directory: string;
  readonly #maxBytes: number;
  #pending = new Map<string, Tensor>();
  #pendingBytes = 0;
  #totalBytes = 0;
  /** Names of the tensors of each shard written. */
  readonly #shards: string[][] = [];

  constructor(directory: string, maxBytes = MAX_SHARD_BYTES) {
    this.#directory = directory;
    this.#maxBytes = maxBytes;
  }

  /** Takes over tensors that are not to be parted, such as those of one layer. */
  add(tensors: Readonly<Record<string, Tensor>>): void {
    const bytes = Object.values(tensors).reduce((sum, { byteLength }) => sum + byteLength, 0);
    if (this.#pendingBytes > 0 && this.#pendingBytes + bytes > this.#maxBytes) this.#flush();
    for (const [name, tensor] of Object.entries(tensors)) this.#pending.set(name, tensor);
    this.#pendingBytes += bytes;
  }

  /** Writes the rest and, for several shards, their index. Returns the bytes of all tensors. */
  finish(): number {
    if (this.#pending.size > 0) this.#flush();
    const count = this.#shards.length;
    const finalName = (shard: number) =>
      count === 1 ? SINGLE_WEIGHTS : `model-${padded(shard + 1)}-of-${padded(count)}.safetensors`;
    this.#shards.forEach((_, shard) => {
      renameSync(this.#path(shard), join(this.#directory, finalName(shard)));
    });
    if (count > 1) this.#writeIndex(finalName);
    return this.#totalBytes;
  }

  #flush(): void {
    mx.saveSafetensors(
      this.#path(this.#shards.length),
      this.#pending,
      new Map([["format", "mlx"]]),
    );
    this.#shards.push([...this.#pending.keys()]);
    for (const tensor of this.#pending.values()) tensor.free();
    this.#pending = new Map();
    this.#totalBytes += this.#pendingBytes;
    this.#pendingBytes = 0;
    mx.clearCache();
  }

  #writeIndex(finalName: (shard: number) => string): void {
    const places = this.#shards.flatMap((names, shard) =>
      names.map((name) => [name, finalName(shard)] as const),
    );
    const index = {
      metadata: { total_size: this.#totalBytes },
      weight_map: Object.fromEntries(places),
    };
    const path = join(this.#directory, WEIGHTS_INDEX);
    writeFileSync(path, `${JSON.stringify(index, null, 4)}\n`);
  }

  #path(shard: number): string {
    return join(this.#directory, `unfinished-${shard}.safetensors`);
  }
}

function padded(number: number): string {
  return String(number).padStart(5, "0");
}
