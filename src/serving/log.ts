import { oneLine } from "../native/one-line.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Never give it input texts, keys or the query strings of image URLs, at any level. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export interface LoggerOptions {
  /** `text` for people, `json` for one JSON object per line. */
  readonly format: "text" | "json";
  /** The least important level that is still written. */
  readonly level: LogLevel;
  /** Takes one line with its line end. Default: stderr. */
  readonly write?: (line: string) => void;
  /** Colours in text lines. Default: only when stderr is a terminal. */
  readonly colour?: boolean;
}

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];
const ANSI_COLOUR: Readonly<Record<LogLevel, number>> = {
  debug: 90,
  info: 36,
  warn: 33,
  error: 31,
};

export function createLogger(options: LoggerOptions): Logger {
  const write = options.write ?? ((line) => void process.stderr.write(line));
  const colour = options.colour ?? (options.write === undefined && colourWanted(process.stderr));
  const log =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      if (LEVELS.indexOf(level) < LEVELS.indexOf(options.level)) return;
      const time = new Date().toISOString();
      const line =
        options.format === "json"
          ? jsonLine(time, level, message, fields)
          : textLine(time, level, message, fields, colour);
      write(`${line}\n`);
    };
  return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
}

/**
 * Lets the process live on when what it prints can no longer be written: its reader went away, or the disk is full.
 * Without a listener that would end it. There is nowhere left to report it; the answers matter more than their log.
 */
export function surviveLostOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}

/** Whether a stream is a terminal whose user has not set NO_COLOR (no-color.org). */
export function colourWanted(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && !process.env["NO_COLOR"] && process.env["TERM"] !== "dumb";
}

/** Fields cannot replace the time, the level or the message. */
function jsonLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  const head = { time, level, message };
  return JSON.stringify(Object.assign({}, head, fields, head));
}

/** `2026-01-31T12:00:00.000Z info  message key=value`, always one line. */
function textLine(
  time: string,
  level: LogLevel,
  message: string,
  fields: LogFields,
  colour: boolean,
): string {
  const name = level.padEnd(5);
  const shownLevel = colour ? `\u001b[${ANSI_COLOUR[level]}m${name}\u001b[39m` : name;
  const shownFields = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}=${shown(value)}`)
    .join("");
  return `${time} ${shownLevel} ${oneLine(message)}${shownFields}`;
}

function shown(value: LogFields[string]): string {
  const text = String(value);
  return /^[^\s"=\p{Cc}]+$/u.test(text) ? text : oneLine(JSON.stringify(text));
}
