import { readFileSync } from "node:fs";
import type { z } from "zod";
import { reasonOf } from "../native/thrown.ts";
import { CheckpointError } from "./error.ts";
import { isFile, refuseLfsPointer, requireFile } from "./regular-file.ts";

/** Reads a JSON file and checks it. Throws CheckpointError naming the file, and the keys where the schema fails. */
export function readJson<Schema extends z.ZodType>(path: string, schema: Schema): z.output<Schema> {
  return checkJson(path, parseJson(path, readText(path)), schema);
}

/** A damaged list may have thousands. */
const SHOWN_PROBLEMS = 3;

/**
 * Checks what a JSON file holds, or a part of it. `place` is the file, and the key of the part. Throws CheckpointError
 * naming it, and the keys where the schema fails.
 */
export function checkJson<Schema extends z.ZodType>(
  place: string,
  json: unknown,
  schema: Schema,
): z.output<Schema> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  const problems = issues
    .slice(0, SHOWN_PROBLEMS)
    .map(({ path, message }) => (path.length > 0 ? `${path.join(".")}: ${message}` : message));
  if (issues.length > SHOWN_PROBLEMS) problems.push(`${issues.length - SHOWN_PROBLEMS} more`);
  throw new CheckpointError(
    `${place}: ${problems.join("; ")}; download the file again, or use another checkpoint`,
  );
}

/** Like readJson; undefined where the file does not exist. */
export function readOptionalJson<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
): z.output<Schema> | undefined {
  return isFile(path) ? readJson(path, schema) : undefined;
}

function readText(path: string): string {
  requireFile(path);
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CheckpointError(`${path} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}

function parseJson(path: string, text: string): unknown {
  refuseLfsPointer(path, text);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CheckpointError(`${path} is not valid JSON (${reasonOf(error)}); download it again`, {
      cause: error,
    });
  }
}
