import { check, failure, MlxError } from "./error.ts";
import { mlx } from "./library.ts";
import { readFlag, slot } from "./slot.ts";

export type Device = "cpu" | "gpu";

const MLX_CPU = 0;
const MLX_GPU = 1;

// Streams are tied to the thread that made them; every thread has its own copy of this module.
let device: Device | undefined;
let computeStream = 0;
let fileStream = 0;

/** Whether mlx can compute on this machine's GPU. */
export function metalAvailable(): boolean {
  check("metal", mlx.mlx_metal_is_available(slot));
  return readFlag();
}

/**
 * Chooses where this thread computes and makes its stream. `auto` is the GPU where Metal is available, else the
 * CPU. Without a call the first operation opens `auto`. Throws MlxError for `gpu` without Metal and when the
 * thread computes elsewhere already.
 */
export function openDevice(requested: "auto" | Device): Device {
  if (requested === "gpu" && !metalAvailable()) {
    throw new MlxError(
      "openDevice",
      "no GPU: Metal is not available here; use the device auto or cpu",
    );
  }
  if (device !== undefined) {
    if (requested !== "auto" && requested !== device) {
      throw new MlxError("openDevice", `this thread computes on the ${device} already`);
    }
    return device;
  }
  const chosen = requested === "auto" ? (metalAvailable() ? "gpu" : "cpu") : requested;
  computeStream = newStream(chosen);
  device = chosen;
  return chosen;
}

/** The stream of this thread. */
export function stream(): number {
  if (computeStream === 0) openDevice("auto");
  return computeStream;
}

/** Files are read on the CPU whatever computes: mlx has no loader for GPU streams. */
export function cpuStream(): number {
  if (openDevice("auto") === "cpu") return computeStream;
  if (fileStream === 0) fileStream = newStream("cpu");
  return fileStream;
}

/** A `mlx_device`; the caller frees it. */
export function newDevice(kind: Device): number {
  const made = mlx.mlx_device_new_type(kind === "gpu" ? MLX_GPU : MLX_CPU, 0);
  if (made === null) throw failure("openDevice");
  return made;
}

function newStream(kind: Device): number {
  const handle = newDevice(kind);
  const made = mlx.mlx_stream_new_device(handle);
  mlx.mlx_device_free(handle);
  if (made === null) throw failure("openDevice");
  return made;
}
