/**
 * The last step of `npm test`: types, format, then every test but those of the executables. `npm test -- <pattern>`
 * narrows the tests to the files whose path holds the pattern, `--binary` to those of the executables; `--all` runs both.
 * Lists what failed and ends with one line, `N passed, N failed`.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { junitFailures, type JUnitTotals, junitTotals } from "./junit.ts";
import { TestOutput } from "./test-output.ts";

const root = join(import.meta.dir, "..");
/** Ours, whatever else lies in the folder; what git ignores is left out. */
const FORMATTED = [
  ...["src", "ffi", "vendor", "test", "build.ts", "bunfig.toml", "package.json", "tsconfig.json"],
  ...["README.md", "CHANGELOG.md"],
];
/** For tests that start programs, on a machine that has other things to do. */
const TEST_TIMEOUT_MS = 60_000;

async function runBun(args: string[], onLine: (line: string) => void): Promise<number> {
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
  });
  await Promise.all([readLines(child.stdout, onLine), readLines(child.stderr, onLine)]);
  return child.exited;
}

async function readLines(
  stream: ReadableStream<Uint8Array>,
  onLine: (line: string) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(onLine);
  }
  if (rest !== "") onLine(rest);
}

/** Runs a check; what it says about a failure, in one line. */
async function check(title: string, args: string[], sayings: RegExp): Promise<string[]> {
  const lines: string[] = [];
  const code = await runBun(args, (line) => {
    lines.push(line);
    console.error(line);
  });
  if (code === 0) return [];
  const said = lines.filter((line) => sayings.test(line)).join(", ");
  return [`${title}: ${said || `bun ${args[0]} ended with exit code ${code}`}`];
}

interface TestRun extends Omit<JUnitTotals, "failed"> {
  readonly failures: readonly string[];
}

/** `name` is that of the report in test-results; `args` tell `bun test` which files to run. */
async function runTests(name: string, args: string[]): Promise<TestRun> {
  const report = join(root, `test-results/${name}.xml`);
  mkdirSync(join(root, "test-results"), { recursive: true });
  rmSync(report, { force: true });
  const output = new TestOutput((text) => process.stderr.write(text));
  const code = await runBun(
    [
      ...["test", `--timeout=${TEST_TIMEOUT_MS}`],
      ...["--reporter=junit", `--reporter-outfile=${report}`],
      ...args,
    ],
    (line) => output.line(line),
  );
  output.end();
  const xml = existsSync(report) ? readFileSync(report, "utf8") : undefined;
  const { passed, skipped } = xml ? junitTotals(xml) : { passed: 0, skipped: 0 };
  const failures = [...(xml ? junitFailures(xml) : []), ...output.outside];
  if (code !== 0 && failures.length === 0) {
    failures.push(`bun test ended with exit code ${code} after ${output.file ?? "no file"}`);
  }
  return { passed, skipped, failures };
}

const BINARY = "./test/binary/";

async function runSuites(flags: string[]): Promise<TestRun[]> {
  const patterns = flags.filter((flag) => !flag.startsWith("--"));
  if (patterns.length > 0) return [await runTests("junit", patterns)];
  const runs: TestRun[] = [];
  if (!flags.includes("--binary")) {
    const folders = ["./src/", "./ffi/", "./vendor/", "./test/"];
    runs.push(await runTests("junit", ["--path-ignore-patterns=test/binary/**", ...folders]));
  }
  if (flags.includes("--binary") || flags.includes("--all")) {
    runs.push(await runTests("junit-binary", [BINARY]));
  }
  return runs;
}

// A failed check counts as one failed test, so that the last line tells the whole truth.
const failedChecks = [
  ...(await check("types", ["check"], /^Found \d+ errors?/)),
  ...(await check(
    "format",
    ["fmt", "--check", "--ignore-pattern=test/fixtures/**", ...FORMATTED],
    /^\S+\.\w+$/,
  )),
];
const runs = await runSuites(Bun.argv.slice(2));
const passed = runs.reduce((total, run) => total + run.passed, 0);
const skipped = runs.reduce((total, run) => total + run.skipped, 0);
const failedTests = runs.flatMap((run) => run.failures);
const failures = [...failedChecks, ...failedTests];
if (passed + failedTests.length === 0) console.error("no test ran");
if (failures.length > 0)
  console.log(`\nfailed:\n${failures.map((line) => `  ${line}`).join("\n")}\n`);
const skips = skipped > 0 ? `, ${skipped} skipped` : "";
console.log(`${passed} passed, ${failures.length} failed${skips}`);
process.exit(failures.length > 0 || passed === 0 ? 1 : 0);
