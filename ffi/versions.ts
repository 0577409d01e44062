import { check } from "./error.ts";
import { mlx, MLXC_VERSION } from "./library.ts";
import { readSlot, slot } from "./slot.ts";

function mlxVersion(): string {
  check("version", mlx.mlx_version(slot));
  const text = readSlot();
  const version = mlx.mlx_string_data(text) ?? "unknown";
  mlx.mlx_string_free(text);
  return version;
}

/** The mlx that runs, and the mlx-c whose interface is used. */
export const versions: { readonly mlx: string; readonly mlxc: string } = {
  mlx: mlxVersion(),
  mlxc: MLXC_VERSION,
};
