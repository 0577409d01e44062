#!/usr/bin/env bun
/** The entry: picks a command, loads only what it needs, and turns errors into one line and an exit code. */
import { loadCommand } from "./cli/commands.ts";
import { versionLine } from "./cli/version.ts";
import { UsageError } from "./cli/usage-error.ts";
import { isOn } from "./cli/variables.ts";
import { oneLine } from "./native/one-line.ts";
import { codeOf } from "./native/thrown.ts";

const HELP_FLAGS = ["--help", "-h", "--usage"];

async function run(args: readonly string[]): Promise<number> {
  const [first = "serve"] = args;
  const isFlag = first.startsWith("-");
  const command = await loadCommand(isFlag ? "serve" : first);
  const rest = isFlag ? args : args.slice(1);
  if (HELP_FLAGS.some((flag) => rest.includes(flag))) return printInColour(command.help);
  if (rest.includes("--version")) return print(`${versionLine()}\n`);
  return command.run(rest, process.env);
}

async function printInColour(text: (colour: boolean) => string): Promise<number> {
  const { colourWanted } = await import("./serving/log.ts");
  return print(text(colourWanted(process.stdout)));
}

async function print(text: string): Promise<number> {
  await Bun.write(Bun.stdout, text);
  return 0;
}

/** One line on stderr: 2 for a UsageError, 1 for everything else. Stack traces only under MLXCEL_DEBUG=1. */
function fail(error: unknown): never {
  // the reader of our output has enough, as in `mlxcel embed … | head`
  if (codeOf(error) === "EPIPE") process.exit(1);
  const message = error instanceof Error ? error.message : String(error);
  const firstLine = message.trim().split(/\r?\n/, 1)[0] || "unknown error";
  const stack =
    error instanceof Error && isOn("MLXCEL_DEBUG", process.env) ? `\n${error.stack}` : "";
  process.stderr.write(`mlxcel: ${oneLine(firstLine)}${stack}\n`);
  process.exit(error instanceof UsageError ? 2 : 1);
}

process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);
process.exit(await run(process.argv.slice(2)).catch(fail));
