const UNITS = ["B", "kB", "MB", "GB", "TB"] as const;

/** A size for people, in decimal units as the hub and the Finder show them: `90.9 MB`. */
export function byteText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.95 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}
