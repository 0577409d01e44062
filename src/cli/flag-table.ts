/** What a command's table of flags is made of: the rows, and what is derived from them. */
import { z } from "zod";
import type { Follows, UnavailableFlag } from "./foreign-flags.ts";

interface FlagSpec {
  /** Heading in `--help`. */
  readonly group: string;
  readonly help: string;
  /** What stands for the value in `--help`. Absent: a switch. */
  readonly placeholder?: string;
  /** Other spellings; those of llama-server among them. */
  readonly aliases?: readonly string[];
  /** Spellings without a value that stand for one, such as `--no-truncate` for `--truncate error`. */
  readonly shortcuts?: Readonly<Record<string, string>>;
  /** llama-server's variables, read when MLXCEL_<FLAG> is not set. */
  readonly llamaEnv?: readonly string[];
  /** Read from the command line only. */
  readonly noEnv?: true;
  /** Text that goes through the validator like a given value. */
  readonly default?: string;
  /** Every occurrence counts: the schema reads a list. Otherwise the last one wins. */
  readonly repeats?: true;
  /** All words up to the next flag are values, as in `-t one two`. */
  readonly takesMany?: true;
  /** Never printed back. */
  readonly secret?: true;
}

const specs = z.registry<FlagSpec>();

/** A row: what the flag's text may be, and the rest. */
export function flag<Schema extends z.ZodType>(schema: Schema, spec: FlagSpec): Schema {
  specs.add(schema, spec);
  return schema;
}

/** One row of a table with its derived spellings. */
export interface Flag extends FlagSpec {
  /** Key in the parsed settings. */
  readonly key: string;
  /** `--embedding-batch-size` */
  readonly name: string;
  /** Variables in the order they are read: MLXCEL_<FLAG>, then llama-server's. */
  readonly env: readonly string[];
}

/** The rows of a schema that reads the raw texts of all flags, keyed by the flag's name in camel case. */
export function flagsOf(schema: z.ZodObject): readonly Flag[] {
  return Object.entries(schema.shape).map(([key, row]) => {
    const spec = row instanceof z.ZodType ? specs.get(row) : undefined;
    if (!spec) throw new Error(`the flag ${key} has no row in the table`);
    const words = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    const ownEnv = `MLXCEL_${words.replaceAll("-", "_").toUpperCase()}`;
    return {
      ...spec,
      key,
      name: `--${words}`,
      env: spec.noEnv ? [] : [ownEnv, ...(spec.llamaEnv ?? [])],
    };
  });
}

/** The flags of one command, and what else its command line may hold. */
export interface FlagTable<Schema extends z.ZodObject = z.ZodObject> {
  /** As it is typed, for messages: `mlxcel embed`. */
  readonly command: string;
  /** Reads the raw texts of all flags, keyed by the flag's name in camel case, into typed settings. */
  readonly schema: Schema;
  readonly flags: readonly Flag[];
  /** Words that belong to no flag are taken, too, such as the names that `mlxcel pull` is given. */
  readonly takesWords?: true;
  /** What these words may be, where they are of a fixed set. */
  readonly words?: readonly string[];
  /** Advice for a word that belongs to no flag where none is taken. */
  readonly bareWord?: string;
  /** Spellings that are taken without effect. */
  readonly ignored?: ReadonlyMap<string, Follows>;
  /** Spellings that are refused with a reason. */
  readonly unavailable?: readonly UnavailableFlag[];
}

/** All spellings of a flag, one letter first, then its name; those of its shortcuts not included. */
export function spellings(flag: Flag): string[] {
  const aliases = flag.aliases ?? [];
  const isOneLetter = (spelling: string) => spelling.length === 2;
  return [
    ...aliases.filter(isOneLetter),
    flag.name,
    ...aliases.filter((alias) => !isOneLetter(alias)),
  ];
}
