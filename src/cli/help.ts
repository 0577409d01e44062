import { spellings, type Flag, type FlagTable } from "./flag-table.ts";
import { FLAGS, SERVE } from "./flags.ts";
import { type Variable, VARIABLES } from "./variables.ts";
import { VERSION } from "./version.ts";

const WIDTH = 80;
const INDENT = 6;
const LIST = new Intl.ListFormat("en-GB");

/** What `--help` says besides the flags. */
interface HelpText {
  /** One line that says what it does. */
  readonly title: string;
  /** Ways to call it, with a remark each. */
  readonly usage: readonly (readonly [string, string])[];
  readonly variables?: readonly Variable[];
  readonly closing?: string;
}

/** The text of `mlxcel --help`, at most 80 columns wide. */
export function helpText(colour: boolean): string {
  return commandHelp(
    SERVE,
    {
      title: `${VERSION}: embeddings and reranking over HTTP on Apple MLX`,
      usage: [
        ["mlxcel [serve] [flags]", "start the server"],
        ["mlxcel embed -t TEXT...", "print the vectors of texts"],
        ["mlxcel rerank -q QUERY -d DOC...", "print documents, best first"],
        ["mlxcel bench [--target URL]", "measure servers under load"],
        ["mlxcel pull | list | show | rm", "download models, look at them, delete them"],
        ["mlxcel arch", "list the families of models that load"],
        ["mlxcel quantize -m MODEL -o DIR", "write a copy with smaller weights"],
        ["mlxcel doctor [--json]", "check this machine and the native libraries"],
        ["mlxcel completions bash|zsh|fish", "print completions for a shell"],
        ["mlxcel help [COMMAND]", "print this text, or that of a command"],
        ["mlxcel version | licenses", "print the version, or the licences"],
      ],
      variables: VARIABLES,
      closing:
        "Every flag that takes part in serving is also read from MLXCEL_<FLAG>, as in MLXCEL_MAX_BODY_SIZE=1GiB; a flag beats a variable. " +
        "llama-server's other spellings are accepted: those without effect here are named at the start. " +
        "The other commands list their own flags with --help.",
    },
    colour,
  );
}

/** The text of a command's `--help`, at most 80 columns wide. */
export function commandHelp(table: FlagTable, text: HelpText, colour: boolean): string {
  const bold = (part: string) => (colour ? `\u001b[1m${part}\u001b[22m` : part);
  const dim = (part: string) => (colour ? `\u001b[2m${part}\u001b[22m` : part);
  const column = Math.max(...text.usage.map(([call]) => call.length)) + 3;
  const lines = [
    `${bold(table.command)} ${text.title}`,
    "",
    bold("Usage"),
    ...text.usage.map(([call, remark]) => `  ${call.padEnd(column)}${remark}`.trimEnd()),
  ];
  for (const group of groupsOf(table)) {
    lines.push("", bold(group));
    for (const flag of table.flags.filter((candidate) => candidate.group === group)) {
      lines.push(...wrap(signature(flag), 2, 6).map(bold));
      lines.push(...wrap([flag.help, ...shortcutSentences(flag)].join(" "), INDENT));
      const facts = [
        ...defaultFact(flag),
        ...(flag.llamaEnv ? [`also read: ${flag.llamaEnv.join(", ")}`] : []),
      ];
      if (facts.length > 0) lines.push(...wrap(facts.join("; "), INDENT).map(dim));
    }
  }
  if (text.variables) lines.push("", bold("Variables without a flag"));
  for (const { name, help } of text.variables ?? []) {
    lines.push(bold(`  ${name}`), ...wrap(help, INDENT));
  }
  if (text.closing) lines.push("", ...wrap(text.closing, 0));
  return `${lines.join("\n")}\n`;
}

/** In the order of the table, but --help itself is read last. */
function groupsOf({ flags }: FlagTable): readonly string[] {
  const groups = [...new Set(flags.map(({ group }) => group))];
  const isOther = (group: string) => group === "Other";
  return [...groups.filter((group) => !isOther(group)), ...groups.filter(isOther)];
}

/** The README's table of flags, generated from the same rows. */
export function flagsMarkdown(): string {
  const rows = FLAGS.map((flag) => {
    const names = spellings(flag).map(code).join(" ");
    const meaning = cell([flag.help, ...shortcutSentences(flag, code)].join(" "));
    const value = flag.placeholder ? code(flag.placeholder) : "";
    const env = flag.env.map(code).join(" ");
    return `| ${[names, value, flag.default ? code(flag.default) : "", env, meaning].join(" | ")} |`;
  });
  const variables = VARIABLES.map(({ name, help }) => `|  |  |  | ${code(name)} | ${cell(help)} |`);
  return [
    "| Flag | Value | Default | Environment | Meaning |",
    "|---|---|---|---|---|",
    ...rows,
    ...variables,
  ].join("\n");
}

/** `-m, --model NAME` */
function signature(flag: Flag): string {
  const value = flag.placeholder ? ` ${flag.placeholder}` : "";
  return `${spellings(flag).join(", ")}${value}`;
}

/** `-v and --verbose stand alone and mean debug.` `shown` marks up what is typed. */
function shortcutSentences({ shortcuts = {} }: Flag, shown = (text: string) => text): string[] {
  const spellingsOf = Map.groupBy(Object.keys(shortcuts), (spelling) => shortcuts[spelling]);
  return [...spellingsOf].map(([value = "", alone]) => {
    const verbs = alone.length === 1 ? "stands alone and means" : "stand alone and mean";
    return `${LIST.format(alone.map(shown))} ${verbs} ${shown(value)}.`;
  });
}

function defaultFact(flag: Flag): string[] {
  return flag.default === undefined ? [] : [`default: ${flag.default}`];
}

function code(text: string): string {
  return `\`${text.replaceAll("|", "\\|")}\``;
}

/** Plain text inside a table, where `|` and `<` have a meaning. */
function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
}

/** Breaks a text at spaces into lines of at most 80 columns, the first indented by `first`, the others by `rest`. */
function wrap(text: string, first: number, rest = first): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const indent = lines.length === 0 ? first : rest;
    if (line === "") line = " ".repeat(indent) + word;
    else if (line.length + 1 + word.length <= WIDTH) line += ` ${word}`;
    else {
      lines.push(line);
      line = " ".repeat(rest) + word;
    }
  }
  return [...lines, line];
}
