/** The fixture checkpoints, their reference numbers, and variants of them made on the fly. */
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { fixture, temporaryDirectory as namedDirectory } from "./fixtures/fixtures.ts";

export { fixture };

/** An empty directory that is removed when the process ends. */
export function temporaryDirectory(): string {
  return namedDirectory("test");
}

const Case = z.object({
  name: z.string(),
  input: z.union([z.string(), z.array(z.number())]),
  token_ids: z.array(z.number()),
  prompt_tokens: z.number(),
  /** After all modules. */
  embedding: z.array(z.number()),
  /** Before the Normalize module. */
  unnormalized: z.array(z.number()).optional(),
  /** Last hidden state of each token, before pooling. */
  token_rows: z.array(z.array(z.number())).optional(),
});
const Expected = z.object({
  dim: z.number(),
  max_length: z.number(),
  cases: z.array(Case),
});
type ReferenceCase = z.infer<typeof Case>;

/** Numbers of the reference implementation for a fixture. */
export function expected(name: string): z.infer<typeof Expected> {
  return Expected.parse(JSON.parse(readFileSync(join(fixture(name), "expected.json"), "utf8")));
}

export function referenceCase(fixtureName: string, caseName: string): ReferenceCase {
  const found = expected(fixtureName).cases.find((entry) => entry.name === caseName);
  if (!found) throw new Error(`${fixtureName} has no case ${caseName}`);
  return found;
}

interface TensorBytes {
  /** As safetensors spells it: `F32`, `F16`, `I64` … */
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

export type TensorTable = Map<string, TensorBytes>;

const Header = z.record(
  z.string(),
  z.object({
    dtype: z.string(),
    shape: z.array(z.number()),
    data_offsets: z.tuple([z.number(), z.number()]),
  }),
);
const JsonObject = z.record(z.string(), z.unknown());
type JsonObject = z.infer<typeof JsonObject>;

/** Reads the safetensors format: 8 bytes of header length, header in JSON, raw bytes. */
export function readTensors(path: string): TensorTable {
  const file = readFileSync(path);
  const dataStart = 8 + Number(file.readBigUInt64LE(0));
  const { __metadata__, ...header } = JsonObject.parse(
    JSON.parse(file.toString("utf8", 8, dataStart)),
  );
  const table: TensorTable = new Map();
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(Header.parse(header))) {
    const [from, to] = data_offsets;
    table.set(name, { dtype, shape, bytes: file.subarray(dataStart + from, dataStart + to) });
  }
  return table;
}

export function writeTensors(path: string, table: TensorTable): void {
  let offset = 0;
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  for (const [name, { dtype, shape, bytes }] of table) {
    header[name] = { dtype, shape, data_offsets: [offset, (offset += bytes.length)] };
  }
  const text = JSON.stringify(header);
  // blanks up to a multiple of 8 bytes, as the format's own library writes it
  const json = Buffer.from(text.padEnd(text.length + (-Buffer.byteLength(text) & 7)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  const parts = [...table.values()].map((tensor) => tensor.bytes);
  writeFileSync(path, Buffer.concat([length, json, ...parts]));
}

export function floatTensor(shape: readonly number[], values: Float32Array): TensorBytes {
  return { dtype: "F32", shape, bytes: new Uint8Array(Float32Array.from(values).buffer) };
}

export function floatsOf(tensor: TensorBytes): Float32Array {
  return new Float32Array(Uint8Array.from(tensor.bytes).buffer);
}

/** A copy of a fixture that may be changed. */
export class CheckpointCopy {
  readonly directory: string;

  constructor(fixtureName: string) {
    this.directory = namedDirectory(fixtureName);
    cpSync(fixture(fixtureName), this.directory, { recursive: true });
    // Fixtures may be read-only.
    Bun.spawnSync(["chmod", "-R", "u+w", this.directory]);
  }

  path(file: string): string {
    return join(this.directory, file);
  }

  remove(file: string): this {
    rmSync(this.path(file), { recursive: true });
    return this;
  }

  write(file: string, content: unknown): this {
    writeFileSync(this.path(file), JSON.stringify(content));
    return this;
  }

  read(file: string): JsonObject {
    return JsonObject.parse(JSON.parse(readFileSync(this.path(file), "utf8")));
  }

  /** Sets keys of a JSON file; `undefined` removes a key. */
  set(file: string, changes: JsonObject): this {
    return this.edit(file, (content) => ({ ...content, ...changes }));
  }

  edit(file: string, change: (content: JsonObject) => JsonObject): this {
    return this.write(file, change(this.read(file)));
  }

  tensors(change: (table: TensorTable) => TensorTable | void, file = "model.safetensors"): this {
    const table = readTensors(this.path(file));
    writeTensors(this.path(file), change(table) ?? table);
    return this;
  }

  /** Repeats the position table until it has this many rows. */
  positions(count: number): this {
    this.set("config.json", { max_position_embeddings: count });
    return this.tensors((table) => {
      const name = "embeddings.position_embeddings.weight";
      const rows = tensorNamed(table, name);
      const width = rows.shape[1] ?? 0;
      const values = floatsOf(rows);
      const tiled = Float32Array.from(
        { length: count * width },
        (_, i) => values[i % values.length] ?? 0,
      );
      table.set(name, floatTensor([count, width], tiled));
    });
  }

  /** Makes every vector that this token takes part in NaN. */
  poison(tokenId: number): this {
    return this.tensors((table) => {
      const name = "embeddings.word_embeddings.weight";
      const { shape } = tensorNamed(table, name);
      const values = floatsOf(tensorNamed(table, name));
      const width = shape[1] ?? 0;
      table.set(
        name,
        floatTensor(shape, values.fill(Number.NaN, tokenId * width, (tokenId + 1) * width)),
      );
    });
  }

  /** Repeats the layers until there are this many. */
  layers(count: number): this {
    this.set("config.json", { num_hidden_layers: count });
    return this.tensors((table) => {
      const own = [...table].filter(([name]) => name.startsWith("encoder.layer."));
      for (let layer = 0; layer < count; layer++) {
        for (const [name, tensor] of own) {
          if (!name.startsWith(`encoder.layer.${layer % 2}.`)) continue;
          table.set(name.replace(/layer\.\d+/, `layer.${layer}`), tensor);
        }
      }
    });
  }
}

export function tensorNamed(table: TensorTable, name: string): TensorBytes {
  const tensor = table.get(name);
  if (!tensor) throw new Error(`no tensor ${name}`);
  return tensor;
}

/** The same table under other names. */
export function renamed(table: TensorTable, rename: (name: string) => string): TensorTable {
  return new Map([...table].map(([name, tensor]) => [rename(name), tensor]));
}
