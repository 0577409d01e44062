/** `mlxcel completions`: what a shell needs to complete the command line. */
import { z } from "zod";
import type { Environment } from "../../native/environment.ts";
import { COMMANDS } from "../commands.ts";
import { flagsOf, type FlagTable } from "../flag-table.ts";
import { flagsSchema } from "../flags.ts";
import { commandHelp } from "../help.ts";
import { writeAnswer } from "../output.ts";
import { readCommandLine } from "../parse.ts";
import { UsageError } from "../usage-error.ts";
import { bashCompletions } from "./bash.ts";
import { completedFlags, type CompletedCommand } from "./completed-command.ts";
import { fishCompletions } from "./fish.ts";
import { zshCompletions } from "./zsh.ts";

const schema = z.object({ help: flagsSchema.shape.help });

const SHELLS = new Map([
  ["bash", bashCompletions],
  ["zsh", zshCompletions],
  ["fish", fishCompletions],
]);

/** The table of its flags. */
export const COMPLETIONS: FlagTable<typeof schema> = {
  command: "mlxcel completions",
  schema,
  flags: flagsOf(schema),
  takesWords: true,
  words: [...SHELLS.keys()],
};

export function completionsHelp(colour: boolean): string {
  return commandHelp(
    COMPLETIONS,
    {
      title: "prints what a shell needs to complete the command line",
      usage: [
        ["source <(mlxcel completions bash)", "in ~/.bashrc"],
        ["source <(mlxcel completions zsh)", "in ~/.zshrc, behind compinit"],
        ["mlxcel completions fish | source", "in config.fish"],
      ],
    },
    colour,
  );
}

/** The command. Returns the exit code. */
export async function completions(args: readonly string[], env: Environment): Promise<number> {
  const { words } = readCommandLine(COMPLETIONS, args, env);
  const script = SHELLS.get(words[0] ?? "");
  if (!script || words.length > 1) {
    throw new UsageError(`completions takes one shell: ${[...SHELLS.keys()].join(", ")}`);
  }
  await writeAnswer(script(await completedCommands()), undefined);
  return 0;
}

async function completedCommands(): Promise<readonly CompletedCommand[]> {
  const commands = Object.entries(COMMANDS).map(async ([name, { remark, load }]) => {
    const { table } = await load();
    return { name, remark, flags: completedFlags(table), words: table.words ?? [] };
  });
  return Promise.all(commands);
}
