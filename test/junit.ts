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
    const value = new RegExp(`\\s${name}="(\\d+)"`).exec(root)?.[1];
    if (value === undefined) throw new Error(`<testsuites> of the JUnit report has no ${name}`);
    return Number(value);
  };
  const failed = count("failures");
  const skipped = count("skipped");
  return { passed: count("tests") - failed - skipped, failed, skipped };
}
