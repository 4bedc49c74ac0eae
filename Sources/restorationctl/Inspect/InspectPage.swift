// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// An application as one self-contained page of HTML that runs only its own script.
struct InspectPage {
  let application: InspectedApplication
  /// Whether the page asks its server for changes. Otherwise it loads nothing.
  var isLive = false

  // SHA-256 of the texts below, in base 64. If one of them changes, a test prints the new value.
  private static let scriptHash = "I5STkI8NHBTfPHKgSx1r/RuJcEFnr+FPkqcUYsglC08="
  private static let liveScriptHash = "tDWQuYIW4jEl6R+il7je4LbnxePzutg+/V3yW2vS5HY="
  private static let styleHash = "0PqIaScU+pSJTUsPcDeT9usDcFEyiBrjUgSBDOgj1Ug="

  var html: String {
    """
    <!DOCTYPE html>
    <html lang="en"><head><meta charset="utf-8">
    <meta http-equiv="Content-Security-Policy" content="\(Self.policy(isLive: isLive))">
    <meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">
    <title>restorationctl inspect</title><style>\(Self.style)</style></head><body>
    \(Self.body)
    <script type="application/json" id="data">\(Self.embedded(application.text.bytes))</script>
    <script>\(Self.script)</script>\(isLive ? "<script>\(Self.liveScript)</script>" : "")</body></html>

    """
  }

  static func policy(isLive: Bool) -> String {
    """
    default-src 'none'; script-src 'sha256-\(scriptHash)'\(isLive ? " 'sha256-\(liveScriptHash)'" : ""); \
    style-src 'sha256-\(styleHash)'; base-uri 'none'; form-action 'none'\(isLive ? "; connect-src 'self'" : "")
    """
  }

  private static let body = """
    <header><h1></h1><span id="facts"></span>
    <label>Search <input id="search" type="search" aria-keyshortcuts="/"></label>
    <span id="matches" role="status"></span></header><main>
    <section id="history" aria-label="Generations"><div><label for="slider">Generation</label>
    <input id="slider" type="range" min="0" step="1"><span id="chosen"></span></div>
    <svg id="line" viewBox="0 0 1000 34" preserveAspectRatio="none" role="img"
    aria-label="Time line of saves, restorations and generations"></svg>
    <p id="legend"><span class="saved">last saves</span> <span class="restored">last restoration</span>
    <span class="tick">a generation</span> <span class="now">the chosen one</span></p>
    <div id="difference" role="region" aria-label="Differences" tabindex="0"></div></section>
    <section id="left" aria-label="Objects"><div id="head" class="columns" aria-hidden="true">
    <span class="name">Object</span><span>Class</span><span class="owner">Process</span>
    <span class="number">Age</span><span class="number">Size</span><span>Marks</span></div>
    <div id="tree" role="tree" aria-label="Objects of all processes" tabindex="0">
    <div id="rows" role="none"></div></div></section>
    <section id="details" aria-label="Selected object" tabindex="0"></section>
    </main><footer id="foot"></footer>
    """

  /// JSON for a script element: escapes what HTML or an old JavaScript would interpret, which can occur in strings
  /// only.
  private static func embedded(_ json: ArraySlice<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(json.count + json.count / 16)
    var index = json.startIndex
    while index < json.endIndex {
      switch json[index] {
      case UInt8(ascii: "<"): text += "\\u003c".utf8
      case UInt8(ascii: ">"): text += "\\u003e".utf8
      case UInt8(ascii: "&"): text += "\\u0026".utf8
      case 0xE2 where json[index...].starts(with: "\u{2028}".utf8):
        text += "\\u2028".utf8
        index += 2
      case 0xE2 where json[index...].starts(with: "\u{2029}".utf8):
        text += "\\u2029".utf8
        index += 2
      case let byte: text.append(byte)
      }
      index += 1
    }
    return String(decoding: text, as: UTF8.self)
  }
}
