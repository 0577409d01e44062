import { z } from "zod";
import { reasonOf } from "../native/thrown.ts";
import { CheckpointError, damagedFile } from "./error.ts";
import { OpenFile } from "./open-file.ts";
import { refuseLfsPointer, requireFile } from "./regular-file.ts";

/** One tensor as the header of a safetensors file describes it. */
export interface StoredTensor {
  /** safetensors' own name of the type: F32, BF16, U8 … */
  readonly dtype: string;
  readonly shape: readonly number[];
  /** First and last-plus-one byte in the file. */
  readonly begin: number;
  readonly end: number;
}

const BYTES_PER_VALUE: Readonly<Record<string, number>> = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  F8_E4M3: 1,
  U16: 2,
  I16: 2,
  F16: 2,
  BF16: 2,
  U32: 4,
  I32: 4,
  F32: 4,
  U64: 8,
  I64: 8,
  F64: 8,
};

/** The format's own bound; without it a damaged length would make us read gigabytes as JSON. */
const MAX_HEADER_BYTES = 100_000_000;
const LENGTH_FIELD_BYTES = 8;

const naturalNumber = z.int().nonnegative();
const headerSchema = z
  .object({
    __metadata__: z.record(z.string(), z.string()).nullish(),
  })
  .catchall(
    z.object({
      dtype: z.string(),
      shape: z.array(naturalNumber),
      data_offsets: z.tuple([naturalNumber, naturalNumber]),
    }),
  );

/**
 * Reads and checks the header of a safetensors file without touching the tensors: its length, its JSON, that every
 * tensor's bytes fit its type and shape, and that the tensors cover the rest of the file exactly. A file that passes
 * can be handed to a native reader. Throws CheckpointError naming the file.
 */
export function readSafetensorsHeader(path: string): Map<string, StoredTensor> {
  const { headerText, tensorStart, tensorBytes } = readHeaderText(path);
  const tensors = parseHeader(path, headerText);
  for (const [name, tensor] of tensors) requireFittingSize(path, name, tensor);
  requireFullCover(path, tensors, tensorBytes);
  // the header counts from its own end
  return new Map(
    [...tensors].map(([name, { begin, end, ...tensor }]) => [
      name,
      { ...tensor, begin: begin + tensorStart, end: end + tensorStart },
    ]),
  );
}

interface HeaderText {
  readonly headerText: string;
  /** First byte behind the header. */
  readonly tensorStart: number;
  readonly tensorBytes: number;
}

function readHeaderText(path: string): HeaderText {
  requireFile(path);
  using file = new OpenFile(path);
  const start = file.bytes(0, Math.min(file.size, 64));
  refuseLfsPointer(path, start.toString("latin1"));
  if (file.size < LENGTH_FIELD_BYTES) throw damagedFile(path, `it has only ${file.size} bytes`);
  const headerBytes = start.readBigUInt64LE(0);
  if (headerBytes > MAX_HEADER_BYTES) {
    throw damagedFile(path, `its header claims ${headerBytes} bytes`);
  }
  const tensorStart = LENGTH_FIELD_BYTES + Number(headerBytes);
  if (tensorStart > file.size) {
    throw damagedFile(
      path,
      `it ends within its header, after ${file.size} of ${tensorStart} bytes`,
    );
  }
  const headerText = file.bytes(LENGTH_FIELD_BYTES, Number(headerBytes)).toString("utf8");
  return { headerText, tensorStart, tensorBytes: file.size - tensorStart };
}

function parseHeader(path: string, text: string): Map<string, StoredTensor> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw damagedFile(path, `its header is not JSON: ${reasonOf(error)}`);
  }
  const parsed = headerSchema.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw damagedFile(path, `its header at "${issue?.path.join(".")}": ${issue?.message}`);
  }
  const { __metadata__: _, ...entries } = parsed.data;
  return new Map(
    Object.entries(entries).map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [begin, end],
        },
      ]) => [name, { dtype, shape, begin, end }],
    ),
  );
}

function requireFittingSize(path: string, name: string, tensor: StoredTensor): void {
  const width = BYTES_PER_VALUE[tensor.dtype];
  if (width === undefined) {
    throw new CheckpointError(
      `${path}: tensor "${name}" has the type ${tensor.dtype}, which is not supported; convert it to F32, F16 or BF16`,
    );
  }
  const expected = tensor.shape.reduce((product, size) => product * size, width);
  if (expected !== tensor.end - tensor.begin) {
    throw damagedFile(
      path,
      `tensor "${name}" needs ${expected} bytes, its offsets span ${tensor.end - tensor.begin}`,
    );
  }
}

function requireFullCover(
  path: string,
  tensors: ReadonlyMap<string, StoredTensor>,
  tensorBytes: number,
): void {
  const ordered = [...tensors].sort(([, a], [, b]) => a.begin - b.begin || a.end - b.end);
  let covered = 0;
  for (const [name, { begin, end }] of ordered) {
    if (begin !== covered) {
      throw damagedFile(path, `tensor "${name}" starts at byte ${begin} instead of ${covered}`);
    }
    covered = end;
  }
  if (covered !== tensorBytes) {
    throw damagedFile(path, `its tensors need ${covered} bytes, the file has ${tensorBytes}`);
  }
}
