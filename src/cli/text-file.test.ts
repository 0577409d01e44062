import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../../test/fixtures/fixtures.ts";
import { readItems, textOf } from "./text-file.ts";
import { UsageError } from "./usage-error.ts";

async function read(name: string, content: string, jsonl = false): Promise<string[]> {
  const path = join(temporaryDirectory("texts"), name);
  await Bun.write(path, content);
  return (await readItems({ path, jsonl })).items.map(textOf);
}

test("a text per line, whatever the line ends and with or without the last one", async () => {
  for (const content of ["a b\nc\n", "a b\nc", "a b\r\nc\r\n", "\ufeffa b\nc", "a b\nc\n\n"]) {
    expect(await read("texts.txt", content)).toEqual(["a b", "c"]);
  }
});

test("white space is a text, as it is behind -t", async () => {
  expect(await read("texts.txt", "a\n \t\n\u3000\n")).toEqual(["a", " \t", "\u3000"]);
  expect(await read("texts.jsonl", '"\\n"')).toEqual(["\n"]);
});

test("JSON lines by the file's name, or when the flag says so", async () => {
  const content = '"a\\nb"\n{"text":"c","id":1}\n';
  for (const name of ["texts.jsonl", "TEXTS.JSONL", "texts.ndjson"]) {
    expect(await read(name, content)).toEqual(["a\nb", "c"]);
  }
  expect(await read("texts.txt", content, true)).toEqual(["a\nb", "c"]);
});

test("JSON lines keep their other keys, and blank ones between them count for nothing", async () => {
  const path = join(temporaryDirectory("texts"), "texts.jsonl");
  await Bun.write(path, '{"text":"a","id":7}\n\n"b"\n\n');
  const { items, lineOf } = await readItems({ path, jsonl: false });
  expect<readonly unknown[]>(items).toEqual([{ text: "a", id: 7 }, "b"]);
  expect(lineOf(1)).toEndWith("texts.jsonl line 3");
});

test.each([
  ["texts.txt", "", "is empty"],
  ["texts.txt", "a\n\nb\n", "line 2 is empty; delete it"],
  ["texts.txt", "a\n\n\n", "line 2 is empty"],
  ["texts.txt", "\n", "is empty"],
  ["texts.jsonl", '"a"\n{"txt":"b"}', "line 2 is no JSON string and no object with text"],
  ["texts.jsonl", '"a"\n5', "line 2 is no JSON string"],
  ["texts.jsonl", "plain", "line 1 is not valid JSON"],
  ["texts.jsonl", '{"text":5}', "line 1 is no JSON string"],
  ["texts.jsonl", '""', "line 1 is empty"],
])("%s %j: %s", async (name, content, message) => {
  const reading = read(name, content);
  await expect(reading).rejects.toThrow(message);
  await expect(reading).rejects.toThrow(UsageError);
});

test.each([
  ["in Latin-1", [...Buffer.from("fine\n你好\n"), 0xe9, 0x0a, 0x61], 3],
  ["cut in a character", [...Buffer.from("one\n"), 0xe4, 0xbd], 2],
  ["with half of a surrogate pair", [0xed, 0xa0, 0x80, 0x0a], 1],
  ["in UTF-16", [0xff, 0xfe, 0x61, 0, 0x0a, 0], 1],
])("a file %s is refused by its line, not repaired", async (_, bytes, line) => {
  const path = join(temporaryDirectory("texts"), "texts.txt");
  await Bun.write(path, Uint8Array.from(bytes));
  await expect(readItems({ path, jsonl: false })).rejects.toThrow(
    new UsageError(`${path} line ${line} is not valid UTF-8; save the file as UTF-8`),
  );
});

test("a file that is not there is a wrong command line", async () => {
  await expect(readItems({ path: "/no/such/file", jsonl: false })).rejects.toThrow(UsageError);
});
