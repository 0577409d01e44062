/**
 * A text that the model cannot read: it has no tokens, or one that the network has no row for. The message has no
 * subject: whoever knows what the text is called in the request puts that in front.
 */
export class UnusableText extends Error {
  override readonly name = "UnusableText";
}
