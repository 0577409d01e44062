import { oneLine } from "../native/one-line.ts";

/** One column of a table for people. */
interface Column {
  readonly title: string;
  readonly align: "left" | "right";
}

/** Lines of aligned columns with two spaces between them; the titles are dim where colours are wanted, control characters escaped. */
export function tableText(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  colour: boolean,
): string {
  const titles = columns.map(({ title }) => title);
  const shown = rows.map((cells) => cells.map(oneLine));
  const widths = columns.map((_, i) =>
    [titles, ...shown].reduce((widest, row) => Math.max(widest, Bun.stringWidth(row[i] ?? "")), 0),
  );
  const line = (cells: readonly string[]) =>
    columns
      .map(({ align }, i) => padded(cells[i] ?? "", widths[i] ?? 0, align))
      .join("  ")
      .trimEnd();
  const head = line(titles);
  return [colour ? `\u001b[2m${head}\u001b[22m` : head, ...shown.map(line)]
    .map((text) => `${text}\n`)
    .join("");
}

/** The text in one line of at most `columns` columns; control characters cannot drive the terminal. */
export function shortText(text: string, columns: number): string {
  const line = text
    .replace(/\s+/g, " ")
    .replace(/\p{Cc}/gu, "�")
    .trim();
  if (Bun.stringWidth(line) <= columns) return line;
  let short = "";
  let width = 1; // of the ellipsis
  for (const character of line) {
    width += Bun.stringWidth(character);
    if (width > columns) break;
    short += character;
  }
  return `${short}…`;
}

function padded(text: string, width: number, align: Column["align"]): string {
  const blanks = " ".repeat(width - Bun.stringWidth(text));
  return align === "left" ? text + blanks : blanks + text;
}
