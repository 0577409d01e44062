/** `mlxcel licenses`: of everything that the executable contains. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { executable } from "../native/executable.ts";

/** From the sources only our own: everything else lies in its own packages then. */
export function licensesText(): string {
  if (!executable) return readFileSync(join(import.meta.dir, "../../LICENSE"), "utf8");
  return new TextDecoder().decode(Bun.zstdDecompressSync(readFileSync(executable.licenses)));
}
