import { Failure } from "./failure.ts";
import type { ItemsField } from "./job.ts";

/** The name of one item in the request: `input[3]`, or `input` when that was not a list. */
export function itemField({ name, isList }: ItemsField, item: number): string {
  return isList ? `${name}[${item}]` : name;
}

/** An item over the limit in a request that refuses truncation. The wording is what llama-server's clients look for. */
export function tooLong(field: string, maxLength: number): Failure {
  const message =
    `${field} is too large: it exceeds maximum context length of ${maxLength} tokens. ` +
    `Shorten it, or allow truncation ("truncate": true).`;
  return new Failure("invalid", message, field);
}
