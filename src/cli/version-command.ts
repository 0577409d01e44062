/** `mlxcel version`: what this program is made of. */
import { z } from "zod";
import type { Environment } from "../native/environment.ts";
import { flagsOf, type FlagTable } from "./flag-table.ts";
import { flagsSchema } from "./flags.ts";
import { commandHelp } from "./help.ts";
import { writeAnswer } from "./output.ts";
import { readCommandLine } from "./parse.ts";
import { versionLine } from "./version.ts";

const schema = z.object({ help: flagsSchema.shape.help });

/** The table of its flags. */
export const VERSION_COMMAND: FlagTable<typeof schema> = {
  command: "mlxcel version",
  schema,
  flags: flagsOf(schema),
  bareWord: "version takes none",
};

export function versionHelp(colour: boolean): string {
  return commandHelp(
    VERSION_COMMAND,
    {
      title: "prints the versions of this program and of what it is made of",
      usage: [
        ["mlxcel version", ""],
        ["mlxcel --version", "the same"],
      ],
    },
    colour,
  );
}

/** The command. Returns the exit code. */
export async function version(args: readonly string[], env: Environment): Promise<number> {
  readCommandLine(VERSION_COMMAND, args, env);
  await writeAnswer(`${versionLine()}\n`, undefined);
  return 0;
}
