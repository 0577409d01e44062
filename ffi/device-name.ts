import { CString } from "bun:ffi";
import { check, failure } from "./error.ts";
import { mlx } from "./library.ts";
import { readFlag, readSlot, slot } from "./slot.ts";
import { type Device, newDevice } from "./stream.ts";

const KEY = "device_name";

/** What mlx calls the chip that computes; undefined where it does not know. */
export function deviceName(kind: Device): string | undefined {
  const device = newDevice(kind);
  const status = mlx.mlx_device_info_get(slot, device);
  const properties = readSlot();
  mlx.mlx_device_free(device);
  if (status !== 0) throw failure("deviceName");
  try {
    check("deviceName", mlx.mlx_device_info_has_key(slot, properties, KEY));
    if (!readFlag()) return undefined;
    check("deviceName", mlx.mlx_device_info_get_string(slot, properties, KEY));
    return String(new CString(readSlot() as never));
  } finally {
    mlx.mlx_device_info_free(properties);
  }
}
