/** `2026-11-29 22:18`, in the time zone of this machine. */
export function localTime(time: Date): string {
  // Swedish dates are ISO 8601
  return time.toLocaleString("sv-SE", { dateStyle: "short", timeStyle: "short" });
}
