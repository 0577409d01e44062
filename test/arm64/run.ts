/**
 * The last step of `npm run test:arm64`: what reaches native code, run as arm64 code under qemu. The calls of every
 * operation and kernel, and models of each kind against their reference numbers. Ends with one line, `N passed, N failed`.
 */
import { ensureArm64 } from "../../vendor/arm64.ts";
import { runSetup } from "../../vendor/run-setup.ts";
import { endWith, runTests, type TestRun } from "../bun-test.ts";

const SUITES = {
  ffi: "./ffi/",
  encoder: "./test/golden/bert.test.ts",
  reranker: "./test/golden/classifier.test.ts",
  decoder: "./test/golden/qwen3-embed.test.ts",
};
/** Emulation is slow. */
const TEST_TIMEOUT_MS = 600_000;

// That library is not for arm64.
const { MLXCEL_MLXC_PATH: _, ...env } = process.env;
const bun = await runSetup(ensureArm64);
const runs: TestRun[] = [];
for (const [suite, path] of Object.entries(SUITES)) {
  runs.push(
    await runTests({
      name: `arm64-${suite}`,
      args: [path],
      timeoutMs: TEST_TIMEOUT_MS,
      bun,
      // More threads than processors wait for each other all the time.
      env: { ...env, OPENBLAS_NUM_THREADS: "1" },
    }),
  );
}
endWith(runs);
