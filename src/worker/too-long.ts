import { Failure } from "./failure.ts";
import type { ItemsField } from "./job.ts";

/** The name of one item in the request: `input[3]`, or `input` when that was not a list. */
export function itemField({ name, isList }: ItemsField, item: number): string {
  return isList ? `${name}[${item}]` : name;
}

/** The item with which a request exceeds `--max-tokens-per-request`. */
export function tooManyTokens(field: string, maxTokens: number): Failure {
  const message =
    `${field} takes the request over ${maxTokens} tokens, the most that this server accepts ` +
    `(--max-tokens-per-request): send fewer or shorter items per request`;
  return new Failure("invalid", message, field);
}

/** An item over the limit in a request that refuses truncation. The wording is what llama-server's clients look for. */
export function tooLong(field: string, maxLength: number): Failure {
  const message =
    `${field} is too large: it exceeds maximum context length of ${maxLength} tokens. ` +
    `Shorten it, or allow truncation ("truncate": true).`;
  return new Failure("invalid", message, field);
}
