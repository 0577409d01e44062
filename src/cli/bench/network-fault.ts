import { codeOf, reasonOf } from "../../native/thrown.ts";

/** No answer came at all: another word than that of the runtime, which asks whether the computer has access. */
export class NetworkFault extends Error {
  override readonly name = "NetworkFault";

  constructor(asked: string, url: string, error: unknown) {
    const isRefused = codeOf(error) === "ECONNREFUSED" || codeOf(error) === "ConnectionRefused";
    super(
      isRefused
        ? `${asked}: connection refused: is a server running at ${new URL(url).origin}?`
        : `${asked}: ${url} does not answer: ${reasonOf(error)}`,
      { cause: error },
    );
  }
}
