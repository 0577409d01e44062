/** The texts of a command line, and how to speak of them: in the user's words, not in those of the server's API. */
import { Failure } from "../worker/failure.ts";
import { type FileItem, readItems } from "./text-file.ts";
import { UsageError } from "./usage-error.ts";

interface GivenFlags {
  /** Behind the flag. */
  readonly words?: readonly string[] | undefined;
  /** Of `--file`. */
  readonly file?: string | undefined;
  readonly jsonl: boolean;
}

/** What a command calls its texts. */
interface Naming {
  /** The field of the API that they are sent in. */
  readonly field: string;
  readonly noun: string;
  readonly flag: string;
}

export class GivenTexts {
  readonly #naming: Naming;
  readonly #sourceOf: (item: number) => string;

  private constructor(
    /** Those behind the flag, then those of the file. */
    readonly items: readonly FileItem[],
    naming: Naming,
    sourceOf: (item: number) => string,
  ) {
    this.#naming = naming;
    this.#sourceOf = sourceOf;
  }

  /** @throws UsageError one line, naming the file and the line that cannot be read */
  static async read(naming: Naming, { words = [], file, jsonl }: GivenFlags): Promise<GivenTexts> {
    const ofFile = file === undefined ? undefined : await readItems({ path: file, jsonl });
    const sourceOf = (item: number) =>
      item < words.length || !ofFile
        ? `${naming.noun} ${item + 1} behind ${naming.flag}`
        : ofFile.lineOf(item - words.length);
    return new GivenTexts([...words, ...(ofFile?.items ?? [])], naming, sourceOf);
  }

  /**
   * What the server would answer with 400 is a wrong command line here, and says so by what was typed.
   *
   * @param first the item of ours that `run` calls the first
   */
  async inTheirWords<T>(run: () => T | Promise<T>, first = 0): Promise<T> {
    try {
      return await run();
    } catch (error) {
      const isTheirs = error instanceof Failure && error.reason === "invalid";
      throw isTheirs ? new UsageError(this.#reworded(error, first)) : error;
    }
  }

  /** Such messages begin with the field that they are about. */
  #reworded({ message, param }: Failure, first: number): string {
    if (param === null || !message.startsWith(param)) return message;
    return this.#typed(param, first) + message.slice(param.length);
  }

  #typed(param: string, first: number): string {
    const [, field = param, item] = /^(\w+)(?:\[(\d+)\])?$/.exec(param) ?? [];
    const { noun, field: ours } = this.#naming;
    if (field !== ours) return `--${param.replaceAll("_", "-")}`;
    return item === undefined ? `the list of ${noun}s` : this.#sourceOf(first + Number(item));
  }
}
