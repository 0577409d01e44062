/** Control characters escaped, so that no text from outside can forge a line or drive the terminal. */
export function oneLine(text: string): string {
  return text.replace(
    /\p{Cc}/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
