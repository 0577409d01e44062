import type { LogFields, Logger, LogLevel } from "../../serving/log.ts";

interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields | undefined;
}

/** A logger that keeps its lines, for tests of what is logged and what never is. */
export class MemoryLogger implements Logger {
  readonly lines: LogLine[] = [];
  debug = this.#at("debug");
  info = this.#at("info");
  warn = this.#at("warn");
  error = this.#at("error");

  #at(level: LogLevel) {
    return (message: string, fields?: LogFields) => {
      this.lines.push({ level, message, fields });
    };
  }
}
