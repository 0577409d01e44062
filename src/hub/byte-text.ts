const UNITS = ["B", "kB", "MB", "GB", "TB"] as const;

/** The size of a file for people, in decimal units as the hub and the Finder show them: `90.9 MB`. */
export function byteText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.95 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}

/** An amount of memory for people, in the units that memory is sold in: `15.6 GiB`. */
export function memoryText(bytes: number): string {
  return bytes < 2 ** 30
    ? `${Math.ceil(bytes / 2 ** 20)} MiB`
    : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
