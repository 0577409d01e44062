/**
 * The last step of `npm test`: types, format, then every test. `npm test -- <pattern>` narrows the
 * tests to the files whose path holds the pattern. Ends with one line, `N passed, N failed`.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type JUnitTotals, junitTotals } from "./junit.ts";

const root = join(import.meta.dir, "..");
const report = join(root, "test-results/junit.xml");

async function runBun(...args: string[]): Promise<boolean> {
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
  });
  return (await child.exited) === 0;
}

async function runTests(patterns: string[]): Promise<JUnitTotals> {
  mkdirSync(join(root, "test-results"), { recursive: true });
  rmSync(report, { force: true });
  const passed = await runBun(
    ...["test", "--reporter=junit", `--reporter-outfile=${report}`],
    ...(patterns.length > 0 ? patterns : ["./src/", "./ffi/", "./vendor/", "./test/"]),
  );
  const totals = existsSync(report)
    ? junitTotals(readFileSync(report, "utf8"))
    : { passed: 0, failed: 0, skipped: 0 };
  // A file that cannot be loaded, or a crash, fails the run without a failed test of its own.
  return passed ? totals : { ...totals, failed: Math.max(totals.failed, 1) };
}

let failedChecks = 0;
// A failed check counts as one failed test, so that the last line tells the whole truth.
if (!(await runBun("check"))) failedChecks++;
if (!(await runBun("fmt", "--check", "--ignore-pattern=test/fixtures/**"))) failedChecks++;
const { passed, failed, skipped } = await runTests(Bun.argv.slice(2));
const failures = failed + failedChecks;
if (passed + failed === 0) console.error("no test ran");
console.log(`${passed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exit(failures > 0 || passed === 0 ? 1 : 0);
