import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { Environment } from "./environment.ts";

/** Where the executable keeps its unpacked native set: `MLXCEL_CACHE_DIR`, else the place that the system has for it. */
export function cacheFolder(env: Environment, platform: NodeJS.Platform): string {
  const own = env["MLXCEL_CACHE_DIR"];
  if (own) return resolve(own);
  const home = env["HOME"] || homedir();
  return platform === "darwin"
    ? join(home, "Library", "Caches", "mlxcel")
    : join(env["XDG_CACHE_HOME"] || join(home, ".cache"), "mlxcel");
}
