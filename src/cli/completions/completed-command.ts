import { spellings, type Flag, type FlagTable } from "../flag-table.ts";

/** A command as shells complete it. */
export interface CompletedCommand {
  readonly name: string;
  readonly remark: string;
  readonly flags: readonly CompletedFlag[];
  /** What it may be given besides flags; empty where that is free. */
  readonly words: readonly string[];
}

export interface CompletedFlag {
  /** All that it may be called, its own name first. */
  readonly spellings: readonly string[];
  /** One line. */
  readonly help: string;
  readonly value: FlagValue;
}

/** What follows a flag. */
type FlagValue =
  | { readonly kind: "none" }
  | { readonly kind: "choice"; readonly choices: readonly string[] }
  | { readonly kind: "file" }
  | { readonly kind: "directory" }
  | { readonly kind: "text"; readonly placeholder: string };

export function completedFlags({ flags }: FlagTable): readonly CompletedFlag[] {
  return flags.flatMap((flag) => {
    const { help } = flag;
    const [line = help] = help.split(/(?<=[.;:])\s/);
    const own = { spellings: ownNameFirst(flag), help: line, value: valueOf(flag) };
    const shortcuts = Object.keys(flag.shortcuts ?? {}).map((shortcut): CompletedFlag => {
      return { spellings: [shortcut], help: line, value: { kind: "none" } };
    });
    return [own, ...shortcuts];
  });
}

function ownNameFirst(flag: Flag): string[] {
  return [flag.name, ...spellings(flag).filter((spelling) => spelling !== flag.name)];
}

function valueOf({ placeholder }: Flag): FlagValue {
  if (placeholder === undefined) return { kind: "none" };
  if (placeholder === "FILE") return { kind: "file" };
  if (placeholder === "DIR") return { kind: "directory" };
  const choices = placeholder.split("|");
  // what is in capitals stands for a value of the user's own
  if (choices.length > 1) {
    return { kind: "choice", choices: choices.filter((choice) => choice !== choice.toUpperCase()) };
  }
  // models are directories or GGUF files as often as names
  return placeholder === "NAME" ? { kind: "file" } : { kind: "text", placeholder };
}
