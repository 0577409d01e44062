/** How people on a Mac install a release and keep it running. */

export interface Release {
  readonly version: string;
  /** Address of the folder that holds the files of the release, without a slash at the end. */
  readonly url: string;
}

/** The archive that the formula installs: its name, and the hex SHA-256 of its content. */
interface Archive {
  readonly name: string;
  readonly sha256: string;
}

/** A Homebrew formula for a tap of one's own. */
export function formula({ version, url }: Release, { name, sha256 }: Archive): string {
  return `class Mlxcel < Formula
  desc "Embeddings and reranking server on Apple MLX"
  homepage "${url}"
  url "${url}/${name}"
  version "${version}"
  sha256 "${sha256}"
  license "Apache-2.0"

  depends_on arch: :arm64
  depends_on macos: :sonoma

  def install
    bin.install "mlxcel"
    pkgshare.install Dir["share/mlxcel/*"]
    doc.install "LICENSES.txt"
  end

  def caveats
    <<~EOS
      The first start unpacks the native libraries into ~/Library/Caches/mlxcel;
      MLXCEL_CACHE_DIR chooses another place.

      brew services start mlxcel serves the default model on port 8080.
      Others are chosen by hand: mlxcel --help lists the flags.
    EOS
  end

  service do
    run [opt_bin/"mlxcel", "serve"]
    keep_alive crashed: true
    log_path var/"log/mlxcel.log"
    error_log_path var/"log/mlxcel.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mlxcel --version")
    embed = "#{bin}/mlxcel embed -m #{pkgshare}/tiny --device cpu --json -t hello"
    assert_equal "embedding", JSON.parse(shell_output(embed))["data"][0]["object"]
  end
end
`;
}

/** For ~/Library/LaunchAgents, on a Mac without Homebrew. */
export const launchAgent = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>mlxcel</string>
  <key>ProgramArguments</key>
  <array>
    <string>/usr/local/bin/mlxcel</string>
    <string>serve</string>
    <string>--port</string>
    <string>8080</string>
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>StandardErrorPath</key>
  <string>/tmp/mlxcel.log</string>
</dict>
</plist>
`;
