/**
 * What a flag's text may be. Every schema here reads text and gives the typed value; its error message says what
 * is accepted, in words that complete "--flag takes …".
 */
import { z } from "zod";

/** `--flag`, `--flag=off`, or an environment variable. */
export function onOff() {
  return z.stringbool({
    truthy: ["true", "1", "on", "yes", "enabled"],
    falsy: ["false", "0", "off", "no", "disabled"],
    error: "on or off",
  });
}

export function text(accepts: string) {
  return z.string({ error: accepts }).trim().min(1, accepts);
}

/** A branch, tag or commit, as git allows their names. */
export function revision() {
  const accepts = "a branch, a tag or a commit";
  return z
    .string()
    .trim()
    .regex(/^\w[\w./-]*$/, accepts)
    .refine((name) => !name.includes(".."), accepts);
}

export function oneOf<const Name extends string>(names: readonly Name[]) {
  return z.enum(names, { error: inWords(names) });
}

export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER) {
  const accepts =
    max === Number.MAX_SAFE_INTEGER
      ? `a whole number, ${min} or more`
      : `a whole number from ${min} to ${max}`;
  return z
    .string()
    .trim()
    .regex(/^[+-]?\d+$/, accepts)
    .transform(Number)
    .pipe(z.number().min(min, accepts).max(max, accepts));
}

const BYTES_PER_UNIT = new Map([
  ["", 1],
  ["b", 1],
  ["k", 1e3],
  ["kb", 1e3],
  ["kib", 2 ** 10],
  ["m", 1e6],
  ["mb", 1e6],
  ["mib", 2 ** 20],
  ["g", 1e9],
  ["gb", 1e9],
  ["gib", 2 ** 30],
  ["t", 1e12],
  ["tb", 1e12],
  ["tib", 2 ** 40],
]);

/**
 * Bytes as a plain number or with a unit: `1048576`, `64MB` (10^6), `1GiB` (2^30), `1.5GiB`.
 * @param minBytes 0, 1 or a number of whole MiB
 */
export function byteSize(minBytes: number) {
  const least = minBytes < MEBIBYTE ? "more than 0" : `${minBytes / MEBIBYTE}MiB or more`;
  const accepts = `a size such as 1048576, 64MB or 1GiB${minBytes > 0 ? `, ${least}` : ""}`;
  return z
    .string()
    .transform((size) => parseByteSize(size) ?? Number.NaN)
    .pipe(
      z
        .number({ error: accepts })
        .min(minBytes, { error: ({ input }) => accepts + unitHint(input) })
        .max(Number.MAX_SAFE_INTEGER, accepts),
    );
}

const MEBIBYTE = 2 ** 20;

/** A small number without a unit was hardly meant in bytes. */
function unitHint(bytes: unknown): string {
  const isSmall = typeof bytes === "number" && bytes > 0 && bytes <= 1024;
  return isSmall ? ` (did you mean ${bytes}GB?)` : "";
}

function parseByteSize(size: string): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(size);
  const bytesPerUnit = BYTES_PER_UNIT.get(match?.[2]?.toLowerCase() ?? "");
  if (!match || bytesPerUnit === undefined) return undefined;
  return Math.floor(Number(match[1]) * bytesPerUnit);
}

const MAX_INT32 = 2 ** 31 - 1;

/** `auto` or a number; given several times the largest number counts. undefined means auto. */
export function largestOrAuto() {
  const accepts = `auto or a whole number from 0 to ${MAX_INT32}`;
  return z
    .array(
      z
        .string()
        .trim()
        .regex(/^(auto|\d+)$/, accepts)
        .refine((value) => value === "auto" || Number(value) <= MAX_INT32, accepts),
    )
    .transform((values) => {
      const largest = Math.max(0, ...values.filter((value) => value !== "auto").map(Number));
      return largest === 0 ? undefined : largest;
    });
}

/** Comma-separated, and the flag may come several times. Given at all, it must hold at least one entry. */
export function commaList(accepts: string) {
  return z
    .array(z.string().refine((value) => entries(value).length > 0, accepts))
    .transform((values) => values.flatMap(entries));
}

/** Web origins, comma-separated; `*` among them stands for every origin. */
export function origins() {
  const accepts = "web origins such as https://example.org, separated by commas, or *";
  return z
    .array(
      z
        .string()
        .refine((value) => entries(value).length > 0 && entries(value).every(isOrigin), accepts),
    )
    .transform((values) => values.flatMap(entries));
}

function isOrigin(origin: string): boolean {
  return origin === "*" || origin === "null" || /^[a-z][a-z0-9+.-]*:\/\/[^/\s?#]+$/i.test(origin);
}

function entries(value: string): string[] {
  return value
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

function inWords(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}
