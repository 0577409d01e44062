/** Runs `bun test`, reads its report and tells how it ended; what `npm test` and `npm run test:arm64` share. */
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readLines } from "../vendor/command.ts";
import { junitFailures, type JUnitTotals, junitTotals } from "./junit.ts";
import { TestOutput } from "./test-output.ts";

const root = join(import.meta.dir, "..");

/** One `bun test`. */
export interface TestRun extends Omit<JUnitTotals, "failed"> {
  /** One line for each failed test, and for all else that went wrong. */
  readonly failures: readonly string[];
}

interface TestRunOptions {
  /** Name of the report in test-results. */
  readonly name: string;
  /** Tell `bun test` which tests to run. */
  readonly args: readonly string[];
  readonly timeoutMs: number;
  /** The command that runs Bun; by default the Bun that runs this. */
  readonly bun?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Runs a command in the folder of the repository to its end; gives its exit code. */
export async function runLines(
  command: readonly string[],
  onLine: (line: string) => void,
  env: NodeJS.ProcessEnv = process.env,
): Promise<number> {
  const child = Bun.spawn([...command], { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
  await Promise.all([readLines(child.stdout, onLine), readLines(child.stderr, onLine)]);
  return child.exited;
}

/** Runs tests and shows what is worth showing on stderr. That none of them ran is a failure. */
export async function runTests(options: TestRunOptions): Promise<TestRun> {
  const { name, args, timeoutMs, bun = [process.execPath], env = process.env } = options;
  const report = join(root, `test-results/${name}.xml`);
  mkdirSync(join(root, "test-results"), { recursive: true });
  rmSync(report, { force: true });
  const output = new TestOutput((text) => process.stderr.write(text));
  const reporter = ["--reporter=junit", `--reporter-outfile=${report}`];
  const code = await runLines(
    [...bun, "test", `--timeout=${timeoutMs}`, ...reporter, ...args],
    (line) => output.line(line),
    env,
  );
  output.end();
  const xml = existsSync(report) ? readFileSync(report, "utf8") : undefined;
  const { passed, skipped } = xml ? junitTotals(xml) : { passed: 0, skipped: 0 };
  const failures = [...(xml ? junitFailures(xml) : []), ...output.outside];
  if (failures.length === 0 && (passed === 0 || code !== 0)) {
    const end = `bun test ended with exit code ${code} after ${output.file ?? "no file"}`;
    failures.push(`${name}: ${passed === 0 ? `no test ran: ${end}` : end}`);
  }
  return { passed, skipped, failures };
}

/** Lists what failed, prints the closing line `N passed, N failed` and ends the process. */
export function endWith(runs: readonly TestRun[], failedChecks: readonly string[] = []): never {
  const passed = runs.reduce((total, run) => total + run.passed, 0);
  const skipped = runs.reduce((total, run) => total + run.skipped, 0);
  const failures = [...failedChecks, ...runs.flatMap((run) => run.failures)];
  if (failures.length > 0)
    console.log(`\nfailed:\n${failures.map((line) => `  ${line}`).join("\n")}\n`);
  const skips = skipped > 0 ? `, ${skipped} skipped` : "";
  console.log(`${passed} passed, ${failures.length} failed${skips}`);
  process.exit(failures.length > 0 || passed === 0 ? 1 : 0);
}
