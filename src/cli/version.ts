import manifest from "../../package.json" with { type: "json" };
import lock from "../../vendor/native.lock.json" with { type: "json" };
import { executable } from "../native/executable.ts";

/** The version in package.json; in an executable that is no release, the commit follows. */
export const VERSION: string =
  executable?.commit === undefined ? manifest.version : `${manifest.version}+${executable.commit}`;

/** What it is made of, without opening the native library. */
export function versionLine(): string {
  const mlx = lock.platforms["linux-x64"].mlx.version;
  return `mlxcel ${VERSION} (MLX ${mlx}, mlx-c ${lock.mlxC.version}, Bun ${Bun.version})`;
}
