import { FLAGS, flagsSchema, spellings, type Flag, type Flags } from "./flags.ts";
import {
  IGNORED_FLAGS,
  UNAVAILABLE_FLAGS,
  type Follows,
  type UnavailableFlag,
} from "./foreign-flags.ts";
import { nearest } from "./nearest.ts";
import { UsageError } from "./usage-error.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ParsedFlags {
  readonly flags: Flags;
  /** Flags of llama-server that were given and have no effect here, as spelled. */
  readonly ignored: readonly string[];
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

const MEANINGS = meanings();

/**
 * Reads the command line, then the environment for what it left open. Own code instead of `util.parseArgs`:
 * that takes `-np` for `-n -p`, and llama-server has many such spellings.
 *
 * @throws UsageError one line that names the flag or variable and what it takes
 */
export function parseFlags(args: readonly string[], env: Environment): ParsedFlags {
  const reading: Reading = { given: new Map(), ignored: [] };
  for (let index = 0; index < args.length;) {
    index += readFlag(args[index] ?? "", args[index + 1], reading);
  }
  refuseUnavailableEnv(env);
  for (const flag of FLAGS) {
    if (!reading.given.has(flag)) reading.given.set(flag, fromEnv(flag, env));
  }
  return { flags: validate(reading.given), ignored: reading.ignored };
}

interface Reading {
  readonly given: Map<Flag, Given[]>;
  readonly ignored: string[];
}

/** An argument taken apart: `--port=80` carries its value, `--port 80` may take the next one. */
interface Argument {
  readonly source: string;
  readonly inline: string | undefined;
  /** undefined also when it is a flag itself. */
  readonly next: string | undefined;
}

/** Reads one flag and returns how many arguments it took. */
function readFlag(argument: string, following: string | undefined, reading: Reading): number {
  if (!/^-./.test(argument)) {
    throw new UsageError(`unexpected argument "${argument}"; a model is named with -m`);
  }
  const [, source = argument, inline] = /^([^=]+)=(.*)$/s.exec(argument) ?? [];
  const next = following === undefined || MEANINGS.has(following) ? undefined : following;
  const meaning = MEANINGS.get(source);
  switch (meaning?.kind) {
    case undefined:
      throw new UsageError(unknownFlag(source));
    case "ignored":
      reading.ignored.push(source);
      return takesNext(meaning.follows, { source, inline, next }) ? 2 : 1;
    case "unavailable":
      requireFine(meaning.unavailable, { source, inline, next });
      return inline === undefined ? 2 : 1;
    case "flag": {
      const implied = meaning.shorthandFor ?? (meaning.flag.placeholder ? undefined : "on");
      const text = textOf(meaning, { source, inline: inline ?? implied, next });
      reading.given.set(meaning.flag, [
        ...(reading.given.get(meaning.flag) ?? []),
        { source, text },
      ]);
      return (inline ?? implied) === undefined ? 2 : 1;
    }
  }
}

function takesNext(follows: Follows, { inline, next }: Argument): boolean {
  if (inline !== undefined || next === undefined) return false;
  return follows === "value" || (follows === "choice" && /^(on|off|auto|0|1)$/.test(next));
}

function requireFine({ isSwitch, fine, why }: UnavailableFlag, argument: Argument): void {
  const value = isSwitch ? undefined : (argument.inline ?? argument.next);
  if (value === undefined || !fine?.includes(value)) {
    throw new UsageError(`${argument.source}: ${why}`);
  }
}

function textOf({ flag, shorthandFor }: FlagMeaning, { source, inline, next }: Argument): string {
  if (shorthandFor !== undefined && inline !== shorthandFor) {
    throw new UsageError(`${source} takes no value; it stands for ${flag.name} ${shorthandFor}`);
  }
  const text = inline ?? next;
  if (text === undefined)
    throw new UsageError(`${source} needs a value: ${source} ${flag.placeholder}`);
  return text;
}

function unknownFlag(source: string): string {
  const known = FLAGS.flatMap((flag) => [...spellings(flag), ...Object.keys(flag.shortcuts ?? {})]);
  const guess = nearest(source, known);
  return `unknown flag ${source}; ${guess ? `did you mean ${guess}? ` : ""}mlxcel --help lists them all`;
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

function refuseUnavailableEnv(env: Environment): void {
  for (const { spellings: names, why, isSwitch, fine, llamaEnv } of UNAVAILABLE_FLAGS) {
    const own = names
      .filter((name) => name.startsWith("--"))
      .map((name) => `MLXCEL_${name.slice(2).replaceAll("-", "_").toUpperCase()}`);
    for (const source of llamaEnv ? [...own, llamaEnv] : own) {
      const value = env[source]?.trim() ?? "";
      const isOff = isSwitch && /^(0|false|off|no|disabled)$/i.test(value);
      if (value !== "" && !isOff && !fine?.includes(value))
        throw new UsageError(`${source}: ${why}`);
    }
  }
}

function validate(given: ReadonlyMap<Flag, readonly Given[]>): Flags {
  const texts: Record<string, string | readonly string[]> = {};
  for (const [flag, values] of given) {
    const all = textsOf(flag, values);
    const last = all.at(-1);
    if (last !== undefined) texts[flag.key] = flag.repeats ? all : last;
  }
  const parsed = flagsSchema.safeParse(texts);
  if (parsed.success) return parsed.data;

  const [issue] = parsed.error.issues;
  const flag = FLAGS.find(({ key }) => key === issue?.path[0]);
  if (!issue || !flag) throw parsed.error;
  const position = issue.path[1];
  const wrong = given.get(flag)?.at(typeof position === "number" ? position : -1);
  const shown = flag.secret || !wrong ? "" : `, not "${wrong.text}"`;
  throw new UsageError(`${wrong?.source ?? flag.name} takes ${issue.message}${shown}`);
}

/** What was given, else the default; a switch is off by default. */
function textsOf(flag: Flag, values: readonly Given[]): string[] {
  if (values.length > 0) return values.map(({ text }) => text);
  const fallback = flag.default ?? (flag.placeholder === undefined ? "off" : undefined);
  return fallback === undefined ? [] : [fallback];
}

function meanings(): ReadonlyMap<string, Meaning> {
  const table = new Map<string, Meaning>();
  for (const [spelling, follows] of IGNORED_FLAGS)
    table.set(spelling, { kind: "ignored", follows });
  for (const unavailable of UNAVAILABLE_FLAGS) {
    for (const spelling of unavailable.spellings)
      table.set(spelling, { kind: "unavailable", unavailable });
  }
  for (const flag of FLAGS) {
    for (const spelling of spellings(flag)) table.set(spelling, { kind: "flag", flag });
    for (const [spelling, shorthandFor] of Object.entries(flag.shortcuts ?? {})) {
      table.set(spelling, { kind: "flag", flag, shorthandFor });
    }
  }
  return table;
}
