import type { CompletedCommand, CompletedFlag } from "./completed-command.ts";

export function fishCompletions(commands: readonly CompletedCommand[]): string {
  const others = commands.map(({ name }) => name).filter((name) => name !== "serve");
  const lines = [
    "# fish completions of mlxcel",
    ...commands.map(({ name, remark }) => subcommand(name, remark)),
    ...commands.filter(({ words }) => words.length > 0).map(wordsOf),
    ...commands.flatMap(({ name, flags }) => {
      // a command line without a command serves
      const condition =
        name === "serve"
          ? `not __fish_seen_subcommand_from ${others.join(" ")}`
          : `__fish_seen_subcommand_from ${name}`;
      return flags.map((flag) => `complete -c mlxcel -n '${condition}' ${options(flag)}`);
    }),
  ];
  return `${lines.join("\n")}\n`;
}

function subcommand(name: string, remark: string): string {
  return `complete -c mlxcel -n __fish_use_subcommand -f -a ${name} -d '${quoted(remark)}'`;
}

function wordsOf({ name, words }: CompletedCommand): string {
  return `complete -c mlxcel -n '__fish_seen_subcommand_from ${name}' -f -a '${words.join(" ")}'`;
}

function options({ spellings, help, value }: CompletedFlag): string {
  const names = spellings.map((spelling) => {
    if (spelling.startsWith("--")) return `-l ${spelling.slice(2)}`;
    return spelling.length === 2 ? `-s ${spelling.slice(1)}` : `-o ${spelling.slice(1)}`;
  });
  return [...names, ...follows(value), `-d '${quoted(help)}'`].join(" ");
}

function follows(value: CompletedFlag["value"]): string[] {
  switch (value.kind) {
    case "none":
      return [];
    case "choice":
      return ["-x", `-a '${value.choices.join(" ")}'`];
    case "file":
      return ["-r"];
    case "directory":
      return ["-x", "-a '(__fish_complete_directories)'"];
    case "text":
      return ["-x"];
  }
}

/** Inside single quotes, where fish reads \\' and \\\\. */
function quoted(text: string): string {
  return text.replace(/['\\]/g, "\\$&");
}
