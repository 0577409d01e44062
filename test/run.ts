/**
 * The last step of `npm test`: types, format, then every test but those of the executables. `npm test -- <pattern>`
 * narrows the tests to the files whose path holds the pattern, `--binary` to those of the executables; `--all` runs both.
 * Lists what failed and ends with one line, `N passed, N failed`.
 */
import { endWith, runLines, runTests, type TestRun } from "./bun-test.ts";

/** Ours, whatever else lies in the folder; what git ignores is left out. */
const FORMATTED = [
  ...["src", "ffi", "vendor", "test", "build.ts", "bunfig.toml", "package.json", "tsconfig.json"],
  ...["README.md", "CHANGELOG.md"],
];
/** For tests that start programs, on a machine that has other things to do. */
const TEST_TIMEOUT_MS = 60_000;

/** Runs a check; what it says about a failure, in one line. */
async function check(title: string, args: string[], sayings: RegExp): Promise<string[]> {
  const lines: string[] = [];
  const code = await runLines([process.execPath, ...args], (line) => {
    lines.push(line);
    console.error(line);
  });
  if (code === 0) return [];
  const said = lines.filter((line) => sayings.test(line)).join(", ");
  return [`${title}: ${said || `bun ${args[0]} ended with exit code ${code}`}`];
}

async function runSuites(flags: string[]): Promise<TestRun[]> {
  const patterns = flags.filter((flag) => !flag.startsWith("--"));
  const timeoutMs = TEST_TIMEOUT_MS;
  if (patterns.length > 0) return [await runTests({ name: "junit", args: patterns, timeoutMs })];
  const runs: TestRun[] = [];
  if (!flags.includes("--binary")) {
    const folders = ["./src/", "./ffi/", "./vendor/", "./test/"];
    const args = ["--path-ignore-patterns=test/binary/**", ...folders];
    runs.push(await runTests({ name: "junit", args, timeoutMs }));
  }
  if (flags.includes("--binary") || flags.includes("--all")) {
    runs.push(await runTests({ name: "junit-binary", args: ["./test/binary/"], timeoutMs }));
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
endWith(await runSuites(Bun.argv.slice(2)), failedChecks);
