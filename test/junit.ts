/** What a JUnit report says in its root element. */
export interface JUnitTotals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Totals of a JUnit report; throws when its root element has none. */
export function junitTotals(xml: string): JUnitTotals {
  const root = /<testsuites\b[^>]*>/.exec(xml)?.[0];
  if (root === undefined) throw new Error("the JUnit report has no <testsuites> element");
  const count = (name: string) => {
    const value = attribute(root, name);
    if (value === undefined) throw new Error(`<testsuites> of the JUnit report has no ${name}`);
    return Number(value);
  };
  const failed = count("failures");
  const skipped = count("skipped");
  return { passed: count("tests") - failed - skipped, failed, skipped };
}

/** The failed tests of a JUnit report, one line each: file, groups and name, first line of the message. */
export function junitFailures(xml: string): string[] {
  const failures = xml.matchAll(/(<testcase\b[^>]*[^/])>\s*(<failure\b[^>]*>)/g);
  return [...failures].map(([, testcase = "", failure = ""]) => {
    // Bun names the innermost group first.
    const groups = attribute(testcase, "classname")?.split(" > ").reverse() ?? [];
    const path = [attribute(testcase, "file"), ...groups, attribute(testcase, "name")];
    const [message] = (attribute(failure, "message") ?? "").split("\n");
    return `${path.filter(Boolean).join(" > ")}: ${message || "no message"}`;
  });
}

function attribute(tag: string, name: string): string | undefined {
  const value = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1];
  return value?.replace(/&(?:#(\d+)|(\w+));/g, (entity, code, word) =>
    code ? String.fromCodePoint(Number(code)) : (ENTITIES.get(word) ?? entity),
  );
}

const ENTITIES = new Map([
  ["lt", "<"],
  ["gt", ">"],
  ["amp", "&"],
  ["quot", '"'],
  ["apos", "'"],
]);
