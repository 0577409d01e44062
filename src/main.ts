#!/usr/bin/env bun
/** The entry: picks a command, loads only what it needs, and turns errors into one line and an exit code. */
import { versionLine } from "./cli/version.ts";
import { UsageError } from "./cli/usage-error.ts";

/** A command with flags of its own. Its module is imported when it is called, and no other. */
interface Command {
  readonly run: (args: readonly string[], env: typeof process.env) => Promise<number>;
  readonly help: (colour: boolean) => string;
}

const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  embed: () => import("./cli/embed.ts").then(({ embed, embedHelp }) => command(embed, embedHelp)),
  rerank: () =>
    import("./cli/rerank.ts").then(({ rerank, rerankHelp }) => command(rerank, rerankHelp)),
  bench: () => import("./cli/bench.ts").then(({ bench, benchHelp }) => command(bench, benchHelp)),
  quantize: () =>
    import("./cli/quantize.ts").then(({ quantize, quantizeHelp }) =>
      command(quantize, quantizeHelp),
    ),
  pull: () => import("./cli/pull.ts").then(({ pull, pullHelp }) => command(pull, pullHelp)),
  list: () => import("./cli/list.ts").then(({ list, listHelp }) => command(list, listHelp)),
  rm: () => import("./cli/rm.ts").then(({ rm, rmHelp }) => command(rm, rmHelp)),
  arch: () => import("./cli/arch.ts").then(({ arch, archHelp }) => command(arch, archHelp)),
  show: () => import("./cli/show.ts").then(({ show, showHelp }) => command(show, showHelp)),
};
const NAMES = ["serve", ...Object.keys(COMMANDS), "doctor", "help", "version"];
/** What users of other tools type. */
const OTHER_NAMES: Readonly<Record<string, string>> = { ls: "list", remove: "rm" };
const HELP_FLAGS = ["--help", "-h", "--usage"];

function command(run: Command["run"], help: Command["help"]): Command {
  return { run, help };
}

async function run(args: readonly string[]): Promise<number> {
  const [first = "serve"] = args;
  const name = first.startsWith("-") ? "serve" : (OTHER_NAMES[first] ?? first);
  const rest = first.startsWith("-") ? args : args.slice(1);
  if (!NAMES.includes(name)) throw new UsageError(await unknownCommand(first));
  if (name === "help") return printHelp(rest[0]);
  if (asksForHelp(rest)) return printHelp(name);
  const found = await COMMANDS[name]?.();
  if (found) return found.run(rest, process.env);
  if (name === "version" || rest.includes("--version")) return print(`${versionLine()}\n`);
  return name === "doctor" ? doctor(rest) : startServer(rest);
}

async function startServer(args: readonly string[]): Promise<number> {
  const { parseFlags } = await import("./cli/parse.ts");
  const { resolveSettings } = await import("./cli/settings.ts");
  const settings = await resolveSettings(parseFlags(args, process.env), process.env);
  const { serve } = await import("./cli/serve.ts");
  return serve(settings);
}

function asksForHelp(args: readonly string[]): boolean {
  return HELP_FLAGS.some((flag) => args.includes(flag));
}

async function doctor(args: readonly string[]): Promise<number> {
  const unknown = args.find((argument) => argument !== "--json");
  if (unknown !== undefined) throw new UsageError(`doctor takes --json only, not ${unknown}`);
  const { runDoctor } = await import("./cli/doctor.ts");
  return runDoctor({ json: args.includes("--json") });
}

/** The help of a command that has its own, else of the program. */
async function printHelp(name = "serve"): Promise<number> {
  const asked = OTHER_NAMES[name] ?? name;
  if (!name.startsWith("-") && !NAMES.includes(asked)) {
    throw new UsageError(await unknownCommand(name));
  }
  const own = await COMMANDS[asked]?.();
  if (own) return printInColour(own.help);
  const { helpText } = await import("./cli/help.ts");
  return printInColour(helpText);
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
  if (error instanceof Error && "code" in error && error.code === "EPIPE") process.exit(1);
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
