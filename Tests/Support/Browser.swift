// SPDX-License-Identifier: Apache-2.0

internal import Glibc
package import JSONRPC

/// A browser without a window.
package enum Browser {
  private static let program = "/usr/bin/chromium"

  /// Whether tests with it can run; in CI they must.
  package static var isUsable: Bool { Files.exists(program) || Environment.isCI }

  /// The document as it is after it was loaded.
  ///
  /// - Parameters:
  ///   - arguments: more of its options.
  ///   - zone: the time zone of its user.
  package static func dump(
    _ address: String,
    in directory: ScratchDirectory,
    _ arguments: [String] = [],
    zone: String = "UTC"
  ) throws -> String {
    let command = command(in: directory) + ["--dump-dom"]
    let environment: [String: String?] = ["HOME": directory.path, "TZ": zone]
    let result = try ChildProcess.run(
      command + arguments + [address],
      environment: environment,
      Deadline(.seconds(120))
    )
    guard result.end == .exit(0) else { throw TestFailure("chromium: \(result.end)\n\(result.errors)") }
    return result.output
  }

  fileprivate static func command(in directory: ScratchDirectory) -> [String] {
    [
      program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
      "--user-data-dir=\(directory.file("browser"))",
    ]
  }
}

/// A browser with one page, in which a test runs scripts. It is told by messages of the DevTools protocol, in a pipe.
package final class BrowserPage {
  private let browser: ChildProcess
  private var session: String?
  private var calls: Int64 = 0

  /// With an empty page.
  package init(in directory: ScratchDirectory) throws {
    // The browser reads descriptor 3 and writes to 4.
    let shell = ["sh", "-c", #"exec "$0" "$@" 3<&0 4>&1 >/dev/null"#]
    browser = try ChildProcess(
      shell + Browser.command(in: directory) + ["--remote-debugging-pipe"],
      environment: ["HOME": directory.path],
      lineEnd: 0
    )
    let target = try call("Target.createTarget", ["url": "about:blank"])["targetId"] ?? .null
    session = try call("Target.attachToTarget", ["targetId": target, "flatten": true])["sessionId"]?.string
  }

  deinit {
    // Its other processes end with it.
    browser.send(signal: SIGTERM)
    _ = try? browser.waitForEnd()
  }

  /// Goes to an address, as if somebody had typed it, and waits until the page is loaded.
  ///
  /// - Parameter script: runs before any of the page.
  package func open(_ address: String, after script: String? = nil) throws {
    if let script {
      try call("Page.enable", [:])
      try call("Page.addScriptToEvaluateOnNewDocument", ["source": .string(script)])
    }
    try call("Page.navigate", ["url": .string(address)])
    try waitUntilLoaded()
  }

  package func resize(width: Int64, height: Int64) throws {
    try call(
      "Emulation.setDeviceMetricsOverride",
      ["width": .integer(width), "height": .integer(height), "deviceScaleFactor": 1, "mobile": false]
    )
  }

  package func waitUntilLoaded() throws {
    try run(
      """
      new Promise(done => document.readyState === 'complete' ? done(0) : addEventListener('load', () => done(0)))
      """
    )
  }

  /// The value of an expression of JavaScript, or of the promise that it is.
  @discardableResult
  package func run(_ expression: String) throws -> JSONValue {
    let answer = try call(
      "Runtime.evaluate",
      ["expression": .string(expression), "awaitPromise": true, "returnByValue": true]
    )
    if let fault = answer["exceptionDetails"] { throw TestFailure("\(expression): \(fault.text)") }
    return answer["result"]?["value"] ?? .null
  }

  /// Waits until an expression is true, looking at it whenever the document has changed.
  package func wait(until expression: String) throws {
    try run(
      """
      new Promise(done => {
        const observer = new MutationObserver(() => look());
        const look = () => { if (\(expression)) { observer.disconnect(); done(); } };
        observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
        look();
      })
      """
    )
  }

  @discardableResult
  private func call(_ method: String, _ parameters: JSONObject) throws -> JSONValue {
    calls += 1
    var message: JSONObject = ["id": .integer(calls), "method": .string(method), "params": .object(parameters)]
    if let session { message["sessionId"] = .string(session) }
    try browser.write(JSONValue.object(message).text + "\0")
    // A browser takes long on a busy machine.
    let deadline = Deadline(.seconds(60))
    while let line = try browser.output?.next(deadline) {
      let answer = try JSONCodec.parse(Array(line.utf8))
      guard answer["id"] == .integer(calls) else { continue }
      guard let result = answer["result"] else { throw TestFailure("\(method): \(line)") }
      return result
    }
    throw TestFailure("chromium has ended")
  }
}
