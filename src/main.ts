#!/usr/bin/env bun
/** The entry: picks a command, loads only what it needs, and turns errors into one line and an exit code. */
import { COMMANDS } from "./cli/commands.ts";
import { versionLine } from "./cli/version.ts";
import { UsageError } from "./cli/usage-error.ts";
import { codeOf } from "./native/thrown.ts";

const NAMES = [...Object.keys(COMMANDS), "licenses", "help", "version"];
/** What users of other tools type. */
const OTHER_NAMES: Readonly<Record<string, string>> = { ls: "list", remove: "rm" };
const HELP_FLAGS = ["--help", "-h", "--usage"];

async function run(args: readonly string[]): Promise<number> {
  const [first = "serve"] = args;
  const name = first.startsWith("-") ? "serve" : (OTHER_NAMES[first] ?? first);
  const rest = first.startsWith("-") ? args : args.slice(1);
  if (!NAMES.includes(name)) throw new UsageError(await unknownCommand(first));
  if (name === "help") return printHelp(rest[0]);
  if (asksForHelp(rest)) return printHelp(name);
  if (name === "version" || rest.includes("--version")) return print(`${versionLine()}\n`);
  if (name === "licenses") return printLicenses();
  const command = await COMMANDS[name]?.load();
  if (!command) throw new Error(`the command ${name} cannot be loaded`);
  return command.run(rest, process.env);
}

function asksForHelp(args: readonly string[]): boolean {
  return HELP_FLAGS.some((flag) => args.includes(flag));
}

async function printLicenses(): Promise<number> {
  const { licensesText } = await import("./cli/licenses.ts");
  return print(licensesText());
}

/** The help of a command that has its own, else of the program. */
async function printHelp(name = "serve"): Promise<number> {
  const asked = OTHER_NAMES[name] ?? name;
  if (!name.startsWith("-") && !NAMES.includes(asked)) {
    throw new UsageError(await unknownCommand(name));
  }
  const { help } = await (COMMANDS[asked] ?? COMMANDS["serve"]!).load();
  return printInColour(help);
}

async function printInColour(text: (colour: boolean) => string): Promise<number> {
  const { colourWanted } = await import("./serving/log.ts");
  return print(text(colourWanted(process.stdout)));
}

async function print(text: string): Promise<number> {
  await Bun.write(Bun.stdout, text);
  return 0;
}

async function unknownCommand(name: string): Promise<string> {
  const { nearest } = await import("./cli/nearest.ts");
  const guess = nearest(name, NAMES);
  if (!guess && process.env["npm_lifecycle_event"] === "start") {
    // npm takes flags for its own and leaves their values
    return `unknown command ${name}; flags of npm start come behind --, as in npm start -- --port 8080`;
  }
  const advice = guess ? `did you mean ${guess}?` : "to serve a model, name it with -m;";
  return `unknown command ${name}; ${advice} mlxcel --help lists the commands`;
}

/** One line on stderr: 2 for a wrong command line, 1 for everything else. Stack traces only under MLXCEL_DEBUG=1. */
function fail(error: unknown): never {
  // the reader of our output has enough, as in `mlxcel embed … | head`
  if (codeOf(error) === "EPIPE") process.exit(1);
  const message = error instanceof Error ? error.message : String(error);
  const firstLine = message.trim().split("\n", 1)[0] || "unknown error";
  const stack =
    error instanceof Error && process.env["MLXCEL_DEBUG"] === "1" ? `\n${error.stack}` : "";
  process.stderr.write(`mlxcel: ${firstLine}${stack}\n`);
  process.exit(error instanceof UsageError ? 2 : 1);
}

process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);
process.exit(await run(process.argv.slice(2)).catch(fail));
