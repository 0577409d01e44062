import type { CompletedCommand, CompletedFlag } from "./completed-command.ts";

/** For bash 3.2, which macOS has, and later. */
export function bashCompletions(commands: readonly CompletedCommand[]): string {
  const names = commands.map(({ name }) => name);
  return `# bash completions of mlxcel
_mlxcel() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" name=serve words
  case "\${COMP_WORDS[1]}" in
    ${names.join("|")}) name="\${COMP_WORDS[1]}" ;;
  esac
  case "$name $before" in
${commands.flatMap(valueCases).join("\n")}
  esac
  case "$name" in
${commands.map(wordsCase).join("\n")}
  esac
  if [ "$COMP_CWORD" = 1 ]; then words="$words ${names.join(" ")}"; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _mlxcel mlxcel
`;
}

function wordsCase({ name, flags, words }: CompletedCommand): string {
  const all = [...flags.flatMap(({ spellings }) => spellings), ...words];
  return `    ${name}) words="${all.join(" ")}" ;;`;
}

function valueCases({ name, flags }: CompletedCommand): string[] {
  return flags
    .filter(({ value }) => value.kind !== "none")
    .map((flag) => {
      const patterns = flag.spellings.map((spelling) => `"${name} ${spelling}"`).join("|");
      return `    ${patterns}) ${reply(flag)}; return ;;`;
    });
}

function reply({ value }: CompletedFlag): string {
  switch (value.kind) {
    case "choice":
      return `COMPREPLY=($(compgen -W "${value.choices.join(" ")}" -- "$word"))`;
    case "directory":
      return 'COMPREPLY=($(compgen -d -- "$word"))';
    // bash completes file names by itself where there is no reply
    case "file":
    case "text":
    case "none":
      return "COMPREPLY=()";
  }
}
