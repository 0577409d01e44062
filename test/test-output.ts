/**
 * What `bun test` prints, made short: one line for a file that passes, everything that is printed about the others.
 * Bun's report leaves out what goes wrong outside of a test; it is picked up here.
 */
export class TestOutput {
  /** One line for each error outside of a test: the file, and what the error says. */
  readonly outside: string[] = [];
  /** The file that runs, or ran last. */
  file: string | undefined;
  #passed = 0;
  #lineIsOpen = false;
  #error: "none" | "wanted" | "found" = "none";
  readonly #write: (text: string) => void;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  /** Takes one line without its newline. */
  line(line: string): void {
    const [, file] = /^(\S+\.test\.ts):$/.exec(line) ?? [];
    if (file !== undefined) return this.#startFile(file);
    if (line.startsWith("(pass) ")) {
      this.#passed++;
      return;
    }
    this.#watchForError(line);
    if (line.trim() === "" && this.#lineIsOpen) return;
    if (/^ *\d+ (pass|tests? failed:)$/.test(line)) this.#endFile();
    if (this.#lineIsOpen) this.#write("\n");
    this.#lineIsOpen = false;
    this.#write(`${line}\n`);
  }

  /** Ends the line of the last file. */
  end(): void {
    this.#endFile();
  }

  #startFile(file: string): void {
    this.#endFile();
    this.file = file;
    this.#passed = 0;
    this.#lineIsOpen = true;
    this.#write(`${file}:`);
  }

  #endFile(): void {
    if (this.#lineIsOpen) this.#write(` ${this.#passed} passed\n`);
    this.#lineIsOpen = false;
  }

  #watchForError(line: string): void {
    if (line.startsWith("# Unhandled error between tests")) this.#error = "wanted";
    const [, message] = /^(?:\w*[eE]rror): (.*)$/.exec(line) ?? [];
    if (this.#error !== "wanted" || message === undefined) return;
    this.outside.push(`${this.file ?? "unknown file"}: outside of a test: ${message}`);
    this.#error = "found";
  }
}
