/** A native file cannot be found, unpacked or opened, or the system is too old for it; one line with the next step. */
export class LibraryError extends Error {
  override readonly name = "LibraryError";
}
