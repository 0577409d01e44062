import { describe, expect, test } from "bun:test";
import { run } from "../../../test/server.ts";
import { COMMANDS } from "../commands.ts";
import { FLAGS } from "../flags.ts";

async function script(shell: string): Promise<string> {
  const { exitCode, stdout } = await run(["completions", shell]);
  expect(exitCode).toBe(0);
  return stdout;
}

/** What bash offers for the last of these words. */
async function offered(...words: readonly string[]): Promise<readonly string[]> {
  const program = `${await script("bash")}
COMP_WORDS=(mlxcel "$@"); COMP_CWORD=$#; _mlxcel; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, exitCode } = Bun.spawnSync(["bash", "-c", program, "bash", ...words]);
  expect(exitCode).toBe(0);
  return stdout
    .toString()
    .split("\n")
    .filter((line) => line !== "");
}

describe("bash", () => {
  test("completes commands, and their own flags", async () => {
    expect(await offered("em")).toEqual(["embed"]);
    expect(await offered("embed", "--dim")).toEqual(["--dimensions"]);
    expect(await offered("rerank", "--dim")).toEqual([]);
    expect(await offered("completions", "z")).toEqual(["zsh"]);
    expect(await offered("help", "rer")).toEqual(["rerank"]);
    expect(await offered("licenses", "--")).toEqual(["--help", "--usage"]);
  });

  test("completes the server's flags with and without its command", async () => {
    for (const words of [["--rerank"], ["serve", "--rerank"]]) {
      expect(await offered(...words)).toContain("--reranker-model");
    }
    expect(await offered("serve", "--")).toHaveLength(
      new Set(
        FLAGS.flatMap(({ name, aliases = [], shortcuts = {} }) =>
          [name, ...aliases, ...Object.keys(shortcuts)].filter((word) => word.startsWith("--")),
        ),
      ).size,
    );
  });

  test("completes the values of a choice", async () => {
    expect(await offered("--device", "")).toEqual(["auto", "gpu", "cpu"]);
    expect(await offered("--device", "g")).toEqual(["gpu"]);
    expect(await offered("--port", "")).toEqual([]);
  });
});

test.each(["zsh", "fish"])("%s gets every command and every flag of the server", async (shell) => {
  const text = await script(shell);
  for (const name of Object.keys(COMMANDS)) expect(text).toContain(name);
  for (const { name } of FLAGS) {
    expect(text).toContain(shell === "zsh" ? `'*${name}[` : `-l ${name.slice(2)} `);
  }
});

const shells = ["zsh", "fish"].filter((shell) => Bun.which(shell));

test.skipIf(shells.length === 0)(
  "the shells that are installed can read their script",
  async () => {
    for (const shell of shells) {
      const child = Bun.spawnSync([shell, "-n"], { stdin: Buffer.from(await script(shell)) });
      expect(child.stderr.toString()).toBe("");
    }
  },
);

test("no native library is needed for it", async () => {
  const { exitCode } = await run(["completions", "bash"], { MLXCEL_MLXC_PATH: "/nowhere" });
  expect(exitCode).toBe(0);
});

test("a missing or unknown shell is one line", async () => {
  for (const args of [[], ["powershell"], ["bash", "zsh"]]) {
    const { exitCode, stderr } = await run(["completions", ...args]);
    expect(exitCode).toBe(2);
    expect(stderr).toBe("mlxcel: completions takes one shell: bash, zsh, fish\n");
  }
});
