/** Reads what matters of a Mach-O file for arm64: the format of programs and libraries on a Mac. */
import { createHash } from "node:crypto";

interface Segment {
  readonly name: string;
  readonly flags: number;
}

/** A symbol that the file takes from a library, by the name under which it loads the library. */
interface Import {
  readonly symbol: string;
  readonly library: string | undefined;
  /** It may be absent. */
  readonly isWeak: boolean;
}

export interface MachO {
  readonly fileType: "executable" | "dylib" | "bundle";
  /** Oldest macOS that it runs on, `14.0`. */
  readonly oldestMacos: string | undefined;
  /** Name under which others load it. */
  readonly installName: string | undefined;
  readonly libraries: readonly string[];
  readonly rpaths: readonly string[];
  readonly segments: readonly Segment[];
  readonly imports: readonly Import[];
  readonly exports: readonly string[];
  /** Where the strings of the symbols are; the newest macOS wants a multiple of 8. */
  readonly stringsOffset: number;
}

const MAGIC = 0xfeedfacf;
const ARM64 = 0x0100000c;
const FILE_TYPES: ReadonlyMap<number, MachO["fileType"]> = new Map([
  [2, "executable"],
  [6, "dylib"],
  [8, "bundle"],
]);
const Command = {
  symbols: 0x2,
  loadDylib: 0xc,
  idDylib: 0xd,
  segment: 0x19,
  codeSignature: 0x1d,
  buildVersion: 0x32,
  loadWeakDylib: 0x80000018,
  rpath: 0x8000001c,
  reexportDylib: 0x8000001f,
} as const;
const HEADER_BYTES = 32;
const SYMBOL_BYTES = 16;

interface LoadCommand {
  readonly kind: number;
  readonly at: number;
}

/** Throws when the file is no Mach-O file for arm64. */
export function readMachO(file: Buffer): MachO {
  const commands = loadCommands(file);
  const all = (...kinds: number[]) => commands.filter(({ kind }) => kinds.includes(kind));
  const text = ({ at }: LoadCommand) => textAt(file, at + file.readUInt32LE(at + 8));
  const fileType = FILE_TYPES.get(file.readUInt32LE(12));
  if (fileType === undefined) throw new Error("a Mach-O file of another kind");
  const libraries = all(Command.loadDylib, Command.loadWeakDylib, Command.reexportDylib).map(text);
  const [version] = all(Command.buildVersion);
  const [symbols] = all(Command.symbols);
  return {
    fileType,
    oldestMacos: version && versionText(file.readUInt32LE(version.at + 12)),
    installName: all(Command.idDylib).map(text)[0],
    libraries,
    rpaths: all(Command.rpath).map(text),
    segments: all(Command.segment).map(({ at }) => ({
      name: textAt(file, at + 8, 16),
      flags: file.readUInt32LE(at + 68),
    })),
    ...(symbols ? readSymbols(file, symbols, libraries) : { imports: [], exports: [] }),
    stringsOffset: symbols ? file.readUInt32LE(symbols.at + 16) : 0,
  };
}

function loadCommands(file: Buffer): LoadCommand[] {
  if (file.readUInt32LE(0) !== MAGIC || file.readUInt32LE(4) !== ARM64) {
    throw new Error("not a Mach-O file for arm64");
  }
  const commands: LoadCommand[] = [];
  let at = HEADER_BYTES;
  for (let i = 0; i < file.readUInt32LE(16); i++) {
    commands.push({ kind: file.readUInt32LE(at), at });
    at += file.readUInt32LE(at + 4);
  }
  return commands;
}

/** Up to the zero byte behind it, or `limit` bytes. */
function textAt(file: Buffer, at: number, limit = Number.POSITIVE_INFINITY): string {
  const end = Math.min(file.indexOf(0, at), at + limit);
  return file.toString("utf8", at, end);
}

/** 16 bits for the first number, 8 for the second. */
function versionText(version: number): string {
  return `${version >>> 16}.${(version >>> 8) & 0xff}`;
}

function readSymbols(file: Buffer, { at }: LoadCommand, libraries: readonly string[]) {
  const symbols = file.readUInt32LE(at + 8);
  const count = file.readUInt32LE(at + 12);
  const strings = file.readUInt32LE(at + 16);
  const imports: Import[] = [];
  const exports: string[] = [];
  for (let i = 0; i < count; i++) {
    const entry = symbols + i * SYMBOL_BYTES;
    const type = file.readUInt8(entry + 4);
    const isExternal = (type & 0x01) !== 0;
    const isDebug = (type & 0xe0) !== 0;
    const isPrivate = (type & 0x10) !== 0;
    if (!isExternal || isDebug || isPrivate) continue;
    const symbol = textAt(file, strings + file.readUInt32LE(entry));
    const isDefined = (type & 0x0e) !== 0;
    if (isDefined) exports.push(symbol);
    else {
      const description = file.readUInt16LE(entry + 6);
      const library = libraries[(description >>> 8) - 1];
      imports.push({ symbol, library, isWeak: (description & 0x40) !== 0 });
    }
  }
  return { imports, exports };
}

/** What a check of a signature has found. */
interface SignatureCheck {
  readonly pages: number;
  /** Pages whose content is not what was signed. */
  readonly badPages: number;
  /** The signature covers everything before itself. */
  readonly isComplete: boolean;
}

const CODE_DIRECTORY = 0xfade0c02;
const SHA256 = 2;

/** Hashes every page of a signed file anew, as a Mac does before it runs a page. Throws when there is no signature. */
export function checkSignature(file: Buffer): SignatureCheck {
  const command = loadCommands(file).find(({ kind }) => kind === Command.codeSignature);
  if (command === undefined) throw new Error("no code signature");
  const signature = file.readUInt32LE(command.at + 8);
  const directory = codeDirectory(file, signature);
  const hashes = directory + file.readUInt32BE(directory + 16);
  const pages = file.readUInt32BE(directory + 28);
  const codeBytes = file.readUInt32BE(directory + 32);
  const hashBytes = file.readUInt8(directory + 36);
  if (file.readUInt8(directory + 37) !== SHA256) throw new Error("signed with another hash");
  const pageBytes = 2 ** file.readUInt8(directory + 39);
  let badPages = 0;
  for (let page = 0; page < pages; page++) {
    const end = Math.min((page + 1) * pageBytes, codeBytes);
    const hash = createHash("sha256")
      .update(file.subarray(page * pageBytes, end))
      .digest();
    const signed = hashes + page * hashBytes;
    if (!hash.equals(file.subarray(signed, signed + hashBytes))) badPages++;
  }
  const isComplete = codeBytes === signature && pages === Math.ceil(codeBytes / pageBytes);
  return { pages, badPages, isComplete };
}

/** Offset of the first code directory in a signature. */
function codeDirectory(file: Buffer, signature: number): number {
  const count = file.readUInt32BE(signature + 8);
  for (let i = 0; i < count; i++) {
    const at = signature + file.readUInt32BE(signature + 16 + 8 * i);
    if (file.readUInt32BE(at) === CODE_DIRECTORY) return at;
  }
  throw new Error("a code signature without a code directory");
}
