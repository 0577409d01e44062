import type { CompletedCommand, CompletedFlag } from "./completed-command.ts";

export function zshCompletions(commands: readonly CompletedCommand[]): string {
  const names = commands.map(({ name, remark }) => `    '${name}:${quoted(remark)}'`);
  return `#compdef mlxcel
# zsh completions of mlxcel
_mlxcel() {
  local -a commands=(
${names.join("\n")}
  )
  local name=serve
  if (( CURRENT == 2 )) && [[ \${words[2]} != -* ]]; then
    _describe command commands
    return
  fi
  if (( \${commands[(I)\${words[2]}:*]} )); then
    name=\${words[2]}
    shift words
    (( CURRENT-- ))
  fi
  case $name in
${commands.map(argumentsCase).join("\n")}
  esac
}
compdef _mlxcel mlxcel
`;
}

function argumentsCase({ name, flags, words }: CompletedCommand): string {
  const rest = words.length === 0 ? "'*:file:_files'" : `'*:word:(${words.join(" ")})'`;
  const specs = flags.flatMap((flag) => flag.spellings.map((spelling) => spec(flag, spelling)));
  return `    ${name})\n      _arguments \\\n        ${[...specs, rest].join(" \\\n        ")}\n      ;;`;
}

/** `--name[what it does]:value:action`, see _arguments in zshcompsys(1). */
function spec({ help, value }: CompletedFlag, spelling: string): string {
  const text = quoted(help.replace(/[[\]:\\]/g, "\\$&"));
  return `'*${spelling}[${text}]${action(value)}'`;
}

function action(value: CompletedFlag["value"]): string {
  switch (value.kind) {
    case "none":
      return "";
    case "choice":
      return `:value:(${value.choices.join(" ")})`;
    case "file":
      return ":file:_files";
    case "directory":
      return ":directory:_files -/";
    case "text":
      return `:${quoted(value.placeholder.replaceAll(":", "\\:"))}: `;
  }
}

/** Inside single quotes. */
function quoted(text: string): string {
  return text.replaceAll("'", "'\\''");
}
