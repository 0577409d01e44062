/** `mlxcel licenses`: of everything that the executable contains. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Environment } from "../native/environment.ts";
import { executable } from "../native/executable.ts";
import { flagsOf, type FlagTable } from "./flag-table.ts";
import { flagsSchema } from "./flags.ts";
import { commandHelp } from "./help.ts";
import { writeAnswer } from "./output.ts";
import { readCommandLine } from "./parse.ts";

const schema = z.object({ help: flagsSchema.shape.help });

/** The table of its flags. */
export const LICENSES: FlagTable<typeof schema> = {
  command: "mlxcel licenses",
  schema,
  flags: flagsOf(schema),
  bareWord: "licenses prints them all",
};

export function licensesHelp(colour: boolean): string {
  return commandHelp(
    LICENSES,
    {
      title: "prints the licences of everything inside",
      usage: [["mlxcel licenses", ""]],
      closing:
        "Run from its sources, it prints that of mlxcel alone: the rest lies in node_modules then.",
    },
    colour,
  );
}

/** The command. Returns the exit code. */
export async function licenses(args: readonly string[], env: Environment): Promise<number> {
  readCommandLine(LICENSES, args, env);
  await writeAnswer(licensesText(), undefined);
  return 0;
}

/** From the sources only our own: everything else lies in its own packages then. */
function licensesText(): string {
  if (!executable) return readFileSync(join(import.meta.dir, "../../LICENSE"), "utf8");
  return new TextDecoder().decode(Bun.zstdDecompressSync(readFileSync(executable.licenses)));
}
