import { expect } from "bun:test";
import { CheckpointError } from "../src/checkpoint/error.ts";

/** The one line with which a checkpoint is refused. What is not refused, or by another error, fails the test. */
export function refusalOf(body: () => unknown): string {
  try {
    body();
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    expect(error.message).not.toContain("\n");
    return error.message;
  }
  throw new Error("nothing was refused");
}
