import type { z } from "zod";
import type { Environment } from "../native/environment.ts";
import { spellings, type Flag, type FlagTable } from "./flag-table.ts";
import { SERVE, type Flags } from "./flags.ts";
import type { Follows, UnavailableFlag } from "./foreign-flags.ts";
import { nearest } from "./nearest.ts";
import { UsageError } from "./usage-error.ts";
import { checkVariables } from "./variables.ts";

export interface ParsedFlags<T = Flags> {
  readonly flags: T;
  /** Flags of llama-server that were given and have no effect here, as spelled. */
  readonly ignored: readonly string[];
  /** Words that belong to no flag. */
  readonly words: readonly string[];
}

/** The text given for a flag, and the spelling or variable that it came from. */
interface Given {
  readonly source: string;
  readonly text: string;
}

interface FlagMeaning {
  readonly kind: "flag";
  readonly flag: Flag;
  /** The value that the spelling implies. */
  readonly shorthandFor?: string;
}

/** What a spelling stands for. */
type Meaning =
  | FlagMeaning
  | { readonly kind: "ignored"; readonly follows: Follows }
  | { readonly kind: "unavailable"; readonly unavailable: UnavailableFlag };

/** Reads the server's command line and environment; see `readCommandLine`. */
export function parseFlags(args: readonly string[], env: Environment): ParsedFlags {
  return readCommandLine(SERVE, args, env);
}

/**
 * Reads a command line, then the environment for what it left open. Own code instead of `util.parseArgs`:
 * that takes `-np` for `-n -p`, and llama-server has many such spellings.
 *
 * @throws UsageError one line that names the flag or variable and what it takes
 */
export function readCommandLine<Schema extends z.ZodObject>(
  table: FlagTable<Schema>,
  args: readonly string[],
  env: Environment,
): ParsedFlags<z.output<Schema>> {
  const reading: Reading = {
    table,
    meanings: meanings(table),
    given: new Map(),
    ignored: [],
    words: [],
  };
  for (let index = 0; index < args.length;) {
    index += readFlag(args[index] ?? "", args.slice(index + 1), reading);
  }
  checkVariables(env);
  refuseUnavailableEnv(table, env);
  for (const flag of table.flags) {
    if (!reading.given.has(flag)) reading.given.set(flag, fromEnv(flag, env));
  }
  const { given, ignored, words } = reading;
  return { flags: validate(table, given), ignored, words };
}

interface Reading {
  readonly table: FlagTable;
  readonly meanings: ReadonlyMap<string, Meaning>;
  readonly given: Map<Flag, Given[]>;
  readonly ignored: string[];
  readonly words: string[];
}

/** An argument taken apart: `--port=80` carries its value, `--port 80` may take the next one. */
interface Argument {
  readonly source: string;
  readonly inline: string | undefined;
  /** The words behind it up to the next flag. */
  readonly following: readonly string[];
}

/** Ends a list of texts: a misspelt flag must not pass for one. Numbers, `--` and texts with blanks may. */
const LOOKS_LIKE_A_FLAG = /^--[a-z][a-z-]*(=|$)/i;

/** Reads one flag and returns how many arguments it took. */
function readFlag(word: string, rest: readonly string[], reading: Reading): number {
  const { table, meanings, given, ignored } = reading;
  if (!/^-./.test(word)) {
    if (table.takesWords) {
      reading.words.push(word);
      return 1;
    }
    throw new UsageError(`unexpected argument "${word}"; ${table.bareWord}`);
  }
  const [, source = word, inline] = /^([^=]+)=(.*)$/s.exec(word) ?? [];
  const nextFlag = rest.findIndex((next) => meanings.has(next) || LOOKS_LIKE_A_FLAG.test(next));
  const argument = { source, inline, following: nextFlag < 0 ? rest : rest.slice(0, nextFlag) };
  const meaning = meanings.get(source);
  switch (meaning?.kind) {
    case undefined:
      throw new UsageError(unknownFlag(source, table));
    case "ignored":
      ignored.push(source);
      return takesNext(meaning.follows, argument) ? 2 : 1;
    case "unavailable":
      requireFine(meaning.unavailable, argument);
      return inline === undefined ? 2 : 1;
    case "flag": {
      const implied = meaning.shorthandFor ?? (meaning.flag.placeholder ? undefined : "on");
      const texts = textsOf(meaning, { ...argument, inline: inline ?? implied });
      const before = given.get(meaning.flag) ?? [];
      given.set(meaning.flag, [...before, ...texts.map((text) => ({ source, text }))]);
      return (inline ?? implied) === undefined ? 1 + texts.length : 1;
    }
  }
}

function takesNext(follows: Follows, { inline, following: [next] }: Argument): boolean {
  if (inline !== undefined || next === undefined) return false;
  return follows === "value" || (follows === "choice" && /^(on|off|auto|0|1)$/.test(next));
}

function requireFine({ isSwitch, fine, why }: UnavailableFlag, argument: Argument): void {
  const value = isSwitch ? undefined : (argument.inline ?? argument.following[0]);
  if (value === undefined || !fine?.includes(value)) {
    throw new UsageError(`${argument.source}: ${why}`);
  }
}

function textsOf(
  { flag, shorthandFor }: FlagMeaning,
  { source, inline, following }: Argument,
): readonly string[] {
  if (shorthandFor !== undefined && inline !== shorthandFor) {
    throw new UsageError(`${source} takes no value; it stands for ${flag.name} ${shorthandFor}`);
  }
  if (inline !== undefined) return [inline];
  if (following.length === 0)
    throw new UsageError(`${source} needs a value: ${source} ${flag.placeholder}`);
  return flag.takesMany ? following : following.slice(0, 1);
}

function unknownFlag(source: string, { flags, command }: FlagTable): string {
  const known = flags.flatMap((flag) => [...spellings(flag), ...Object.keys(flag.shortcuts ?? {})]);
  const guess = nearest(source, known);
  return `unknown flag ${source}; ${guess ? `did you mean ${guess}? ` : ""}${command} --help lists them all`;
}

/** An empty variable counts as not set. A flag that repeats takes all of llama-server's variables. */
function fromEnv(flag: Flag, env: Environment): Given[] {
  const set = flag.env.flatMap((source) => {
    const text = env[source];
    return text === undefined || text.trim() === "" ? [] : [{ source, text }];
  });
  const own = set.filter(({ source }) => source === flag.env[0]);
  if (own.length > 0) return own;
  return flag.repeats ? set : set.slice(0, 1);
}

function refuseUnavailableEnv({ unavailable = [] }: FlagTable, env: Environment): void {
  for (const { spellings: names, why, isSwitch, fine } of unavailable) {
    const own = names
      .filter((name) => name.startsWith("--"))
      .map((name) => `MLXCEL_${name.slice(2).replaceAll("-", "_").toUpperCase()}`);
    for (const source of own) {
      const value = env[source]?.trim() ?? "";
      const isOff = isSwitch && /^(0|false|off|no|disabled)$/i.test(value);
      if (value !== "" && !isOff && !fine?.includes(value))
        throw new UsageError(`${source}: ${why}`);
    }
  }
}

function validate<Schema extends z.ZodObject>(
  { schema, flags }: FlagTable<Schema>,
  given: ReadonlyMap<Flag, readonly Given[]>,
): z.output<Schema> {
  const texts: Record<string, string | readonly string[]> = {};
  for (const [flag, values] of given) {
    const all = givenTexts(flag, values);
    const last = all.at(-1);
    if (last !== undefined) texts[flag.key] = flag.repeats ? all : last;
  }
  const parsed = schema.safeParse(texts);
  if (parsed.success) return parsed.data;

  const [issue] = parsed.error.issues;
  const flag = flags.find(({ key }) => key === issue?.path[0]);
  if (!issue || !flag) throw parsed.error;
  const position = issue.path[1];
  const wrong = given.get(flag)?.at(typeof position === "number" ? position : -1);
  const shown = flag.secret || !wrong ? "" : `, not "${wrong.text}"`;
  throw new UsageError(`${wrong?.source ?? flag.name} takes ${issue.message}${shown}`);
}

/** What was given, else the default; a switch is off by default. */
function givenTexts(flag: Flag, values: readonly Given[]): string[] {
  if (values.length > 0) return values.map(({ text }) => text);
  const fallback = flag.default ?? (flag.placeholder === undefined ? "off" : undefined);
  return fallback === undefined ? [] : [fallback];
}

function meanings(table: FlagTable): ReadonlyMap<string, Meaning> {
  const found = new Map<string, Meaning>();
  for (const [spelling, follows] of table.ignored ?? [])
    found.set(spelling, { kind: "ignored", follows });
  for (const unavailable of table.unavailable ?? []) {
    for (const spelling of unavailable.spellings)
      found.set(spelling, { kind: "unavailable", unavailable });
  }
  for (const flag of table.flags) {
    for (const spelling of spellings(flag)) found.set(spelling, { kind: "flag", flag });
    for (const [spelling, shorthandFor] of Object.entries(flag.shortcuts ?? {})) {
      found.set(spelling, { kind: "flag", flag, shorthandFor });
    }
  }
  return found;
}
