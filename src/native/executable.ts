/** A native file inside the executable, compressed with zstd. */
export interface EmbeddedFile {
  /** Path inside the native set, with `/`. */
  readonly name: string;
  /** Where the compressed bytes can be read. */
  readonly path: string;
  /** Size and hex SHA-256 of what comes out. */
  readonly bytes: number;
  readonly sha256: string;
}

export interface Executable {
  /** Git commit of the sources; undefined for a release. */
  readonly commit: string | undefined;
  /** Name of the native set, which changes with its content. */
  readonly nativeSet: string;
  readonly files: readonly EmbeddedFile[];
  /** Where the licences of everything inside can be read, compressed with zstd. */
  readonly licenses: string;
}

/** What the executable carries; undefined when the program runs from its sources. build.ts replaces this module. */
export const executable: Executable | undefined = undefined;
