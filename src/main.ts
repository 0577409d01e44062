#!/usr/bin/env bun
/** The entry: picks a command, loads only what it needs, and turns errors into one line and an exit code. */
import { versionLine } from "./cli/version.ts";
import { UsageError } from "./cli/usage-error.ts";

const COMMANDS = ["serve", "embed", "rerank", "bench", "doctor", "help", "version"];
const HELP_FLAGS = ["--help", "-h", "--usage"];

async function run(args: readonly string[]): Promise<number> {
  const [first = "serve"] = args;
  const command = first.startsWith("-") ? "serve" : first;
  const rest = command === first ? args.slice(1) : args;
  if (!COMMANDS.includes(command)) throw new UsageError(await unknownCommand(command));
  if (command === "embed") return embedTexts(rest);
  if (command === "rerank") return rankDocuments(rest);
  if (command === "bench") return measureServers(rest);
  if (command === "help" || asksForHelp(rest)) return printHelp();
  if (command === "version" || rest.includes("--version")) return print(`${versionLine()}\n`);
  return command === "doctor" ? doctor(rest) : startServer(rest);
}

async function startServer(args: readonly string[]): Promise<number> {
  const { parseFlags } = await import("./cli/parse.ts");
  const { resolveSettings } = await import("./cli/settings.ts");
  const settings = resolveSettings(parseFlags(args, process.env), process.env);
  const { serve } = await import("./cli/serve.ts");
  return serve(settings);
}

async function embedTexts(args: readonly string[]): Promise<number> {
  const { embed, embedHelp } = await import("./cli/embed.ts");
  return asksForHelp(args) ? printInColour(embedHelp) : embed(args, process.env);
}

async function rankDocuments(args: readonly string[]): Promise<number> {
  const { rerank, rerankHelp } = await import("./cli/rerank.ts");
  return asksForHelp(args) ? printInColour(rerankHelp) : rerank(args, process.env);
}

async function measureServers(args: readonly string[]): Promise<number> {
  const { bench, benchHelp } = await import("./cli/bench.ts");
  return asksForHelp(args) ? printInColour(benchHelp) : bench(args, process.env);
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

async function printHelp(): Promise<number> {
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

async function unknownCommand(command: string): Promise<string> {
  const { nearest } = await import("./cli/nearest.ts");
  const guess = nearest(command, COMMANDS);
  if (!guess && process.env["npm_lifecycle_event"] === "start") {
    // npm takes flags for its own and leaves their values
    return `unknown command ${command}; flags of npm start come behind --, as in npm start -- --port 8080`;
  }
  const advice = guess ? `did you mean ${guess}?` : "to serve a model, name it with -m;";
  return `unknown command ${command}; ${advice} mlxcel --help lists the commands`;
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
