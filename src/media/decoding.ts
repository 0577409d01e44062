/** One pixel of the colour #0c2238, as PNG. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPgUbIAAACkAGemLTM0AAAAAElFTkSuQmCC";
const PIXEL = Buffer.from([0x0c, 0x22, 0x38]);

/**
 * Decodes a tiny image and returns the version of libvips, which decodes all images.
 *
 * @throws Error when libvips cannot be opened or the pixel comes out wrong
 */
export async function checkDecoding(): Promise<string> {
  const { default: sharp } = await import("sharp");
  const pixel = await sharp(Buffer.from(PNG, "base64")).raw().toBuffer();
  if (!pixel.equals(PIXEL)) throw new Error(`libvips decoded a pixel to ${pixel.toString("hex")}`);
  return sharp.versions.vips;
}
