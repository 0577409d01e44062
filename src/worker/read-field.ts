import { UnusableText } from "../pipeline/unusable-text.ts";
import { Failure } from "./failure.ts";

/** Reads a field of the request; a text in it that the model cannot read is told of by the field's name. */
export function readField<T>(field: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof UnusableText)) throw error;
    throw new Failure("invalid", `${field} ${error.message}`, field);
  }
}
