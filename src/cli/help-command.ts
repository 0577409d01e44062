/** `mlxcel help`: the help of the program, or of a command. */
import { z } from "zod";
import type { Environment } from "../native/environment.ts";
import { colourWanted } from "../serving/log.ts";
import { COMMANDS, loadCommand } from "./commands.ts";
import { flagsOf, type FlagTable } from "./flag-table.ts";
import { flagsSchema } from "./flags.ts";
import { commandHelp } from "./help.ts";
import { writeAnswer } from "./output.ts";
import { readCommandLine } from "./parse.ts";
import { UsageError } from "./usage-error.ts";

const schema = z.object({ help: flagsSchema.shape.help });

/** The table of its flags. */
export const HELP: FlagTable<typeof schema> = {
  command: "mlxcel help",
  schema,
  flags: flagsOf(schema),
  takesWords: true,
  words: Object.keys(COMMANDS),
};

export function helpOfHelp(colour: boolean): string {
  return commandHelp(
    HELP,
    {
      title: "prints the help of the program, or of a command",
      usage: [
        ["mlxcel help", "every flag of the server"],
        ["mlxcel help COMMAND", "as mlxcel COMMAND --help does"],
      ],
      closing: `Commands: ${Object.keys(COMMANDS).join(", ")}.`,
    },
    colour,
  );
}

/** The command. Returns the exit code. */
export async function printHelp(args: readonly string[], env: Environment): Promise<number> {
  const { words } = readCommandLine(HELP, args, env);
  if (words.length > 1) throw new UsageError("help takes the name of one command");
  const { help } = await loadCommand(words[0] ?? "serve");
  await writeAnswer(help(colourWanted(process.stdout)), undefined);
  return 0;
}
