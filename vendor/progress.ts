/** Tells how far a step is: a fraction from 0 to 1. */
export type ReportFraction = (fraction: number) => void;

const terminal = process.stderr.isTTY === true && process.env["TERM"] !== "dumb";
const colours = terminal && !process.env["NO_COLOR"];
const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_MS = 100;
const PLAIN_LINE_MS = 10_000;
const ERASE_LINE = "\r\x1b[2K";

function green(text: string): string {
  return colours ? `\x1b[32m${text}\x1b[0m` : text;
}

/** Prints one line about the set-up on stderr. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

/**
 * Runs one step of the set-up and shows that it lives: a spinner with the percentage on a terminal,
 * otherwise a line at its start, every ten seconds and at its end.
 */
export async function step<T>(
  title: string,
  work: (report: ReportFraction) => Promise<T>,
): Promise<T> {
  const startedMs = performance.now();
  let fraction: number | undefined;
  let frame = 0;
  const state = () => {
    const seconds = Math.round((performance.now() - startedMs) / 1000);
    const percent = fraction === undefined ? "" : ` ${Math.floor(fraction * 100)}%`;
    return `${percent} (${seconds} s)`;
  };
  const draw = () => {
    if (terminal) {
      const spinner = FRAMES[frame++ % FRAMES.length];
      process.stderr.write(`${ERASE_LINE}${spinner} ${title}${state()}`);
    } else say(`${title}:${state()}`);
  };
  if (terminal) draw();
  else say(`${title} …`);
  const timer = setInterval(draw, terminal ? FRAME_MS : PLAIN_LINE_MS);
  try {
    const result = await work((value) => {
      fraction = Math.min(1, Math.max(0, value));
    });
    fraction = undefined;
    if (terminal) process.stderr.write(`${ERASE_LINE}${green("✓")} ${title}${state()}\n`);
    else say(`${title}: done${state()}`);
    return result;
  } catch (error) {
    if (terminal) process.stderr.write(ERASE_LINE);
    throw error;
  } finally {
    clearInterval(timer);
  }
}
