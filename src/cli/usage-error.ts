/**
 * What the user wrote is wrong: a command line, a variable, a file that a flag names and that cannot be read or
 * written, texts and keys in it. One line on stderr and exit code 2; whatever else fails (a model, a port, a certificate, the hub) is any other Error and
 * ends with exit code 1.
 */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
