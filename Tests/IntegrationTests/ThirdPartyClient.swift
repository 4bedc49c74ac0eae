// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// A client that others wrote, used by a small program of `Tests/Clients/thirdparty`; see README.md there.
///
/// The raw value is the name of the process in the program's session.
enum ThirdPartyClient: String, CaseIterable, CustomTestStringConvertible, Sendable {
  case aiorpcX
  case curl
  case emacs
  case jansson
  case jsonrpcGLib = "jsonrpc-glib"
  case jsonrpcclient
  case jsonrpclibPelix = "jsonrpclib-pelix"
  case libJSONRPCCpp = "libjson-rpc-cpp"
  case nc
  case nodeHTTP = "node-http"
  case nodeNet = "node-net"
  case pjrpc
  case pygls
  case pythonLSPJSONRPC = "python-lsp-jsonrpc"
  case socat
  case sourcegraphJSONRPC2 = "sourcegraph-jsonrpc2"
  case vimLSP = "vim-lsp"
  case vimNL = "vim-nl"

  var testDescription: String { rawValue }

  // MARK: Expectations

  /// Its output, line by line, in this order.
  var steps: [String] {
    var steps = ["ok initialize", "ok register"]
    if sendsNotifications { steps.append("ok notify") }
    steps += ["ok encode", "ok decode"]
    if sendsBatches { steps.append("ok batch") }
    steps.append(showsDataOfErrors ? "ok error -32002 unknownObject" : "ok error -32002")
    if self == .libJSONRPCCpp { steps.append("ok poll") }
    if isCalled { steps += ["waiting", "ok encodeRequest", "ok saved"] }
    steps.append("ok goodbye")
    if self == .nc { steps.append("ok oneShot") }
    return steps
  }

  /// Whether the broker's calls and notifications reach it, over its connection or by `nextRequest`.
  private var isCalled: Bool { self != .nc }

  /// libjson-rpc-cpp waits for an answer to a notification.
  private var sendsNotifications: Bool { self != .libJSONRPCCpp }

  private var sendsBatches: Bool {
    switch self {
    case .aiorpcX, .curl, .jsonrpcclient, .jsonrpclibPelix, .libJSONRPCCpp, .nc, .nodeHTTP, .pjrpc: true
    default: false
    }
  }

  private var showsDataOfErrors: Bool { self != .aiorpcX && self != .jsonrpclibPelix }

  /// Digits of an integer beyond 64 bits, if the client supports it.
  var huge: String? {
    switch self {
    case .aiorpcX, .curl, .jsonrpcclient, .jsonrpclibPelix, .nc, .pjrpc, .pygls, .pythonLSPJSONRPC, .socat,
      .sourcegraphJSONRPC2:
      "12345678901234567890123"
    default: nil
    }
  }

  /// The state that it stores, but for the huge number.
  var state: JSONObject {
    var state: JSONObject = [
      "text": "Grüße, 世界 🗒 \"\\\u{2028}",
      "nested": ["list": [1, [true, nil], ["a": ["b": []]]], "": [:]],
      "ratio": 0.1,
      // Node's numbers are doubles.
      "big": self == .nodeNet || self == .nodeHTTP ? 9_007_199_254_740_991 : 9_007_199_254_740_993,
    ]
    if isCalled { state["asked"] = true }
    return state
  }

  // MARK: How it is run

  private static let directory = "\(Products.repository)/Tests/Clients/thirdparty"
  private static let python = "\(Products.repository)/.build/venv/bin/python"

  /// The program, ready to run; it is compiled if that is necessary.
  func command() throws -> [String] {
    switch self {
    case .aiorpcX: python("aiorpcx_client.py")
    case .curl: [file("curl_client.sh")]
    case .emacs: ["emacs", "-Q", "--batch", "-l", file("emacs_client.el")]
    case .jansson: [try built("jansson_client")]
    case .jsonrpcGLib: [try built("jsonrpc_glib_client")]
    case .jsonrpcclient: python("jsonrpcclient_client.py")
    case .jsonrpclibPelix: python("pelix_client.py")
    case .libJSONRPCCpp: [try built("libjson_rpc_cpp_client")]
    case .nc: [file("nc_client.sh")]
    case .nodeHTTP: ["node", file("node_http_client.js")]
    case .nodeNet: ["node", file("node_net_client.js")]
    case .pjrpc: python("pjrpc_client.py")
    case .pygls: python("pygls_client.py")
    case .pythonLSPJSONRPC: python("lsp_jsonrpc_client.py")
    case .socat: [file("socat_client.sh")]
    case .sourcegraphJSONRPC2: [try built("sourcegraph_jsonrpc2_client")]
    case .vimLSP: ["vim", "--clean", "-es", "-S", file("vim_lsp_client.vim")]
    case .vimNL: ["vim", "--clean", "-es", "-S", file("vim_nl_client.vim")]
    }
  }

  private func file(_ name: String) -> String { "\(Self.directory)/\(name)" }

  private func python(_ program: String) -> [String] { [Self.python, "-B", file(program)] }

  /// A program of the Makefile, compiled again only when its source is newer.
  private func built(_ program: String) throws -> String {
    let build = "\(Products.repository)/.build/clients"
    let path = "\(build)/\(program)"
    let result = try ChildProcess.run(
      ["make", "-s", "-f", file("Makefile"), "BUILD=\(build)", path],
      environment: ["MAKEFLAGS": nil, "MFLAGS": nil],
      Deadline(.seconds(240))
    )
    guard result.end == .exit(0) else { throw TestFailure("\(program) is not built: \(result.errors)") }
    return path
  }

  /// Skips the test by name if the client is not installed; in CI that is a failure.
  func requireInstalled() throws {
    let result = try? ChildProcess.run(probe)
    guard result?.end != .exit(0) else { return }
    let text = "\(rawValue) is not installed, or not all it needs; Tests/run.sh installs it"
    if Environment.isCI { throw TestFailure("\(text): \(result?.errors ?? "")") }
    // A cancelled case is not reported otherwise.
    Issue.record("skipped: \(text)", severity: .warning)
    try Test.cancel("\(text)")
  }

  /// A command that succeeds if the client is installed.
  private var probe: [String] {
    switch self {
    case .aiorpcX: [Self.python, "-c", "import aiorpcx"]
    case .curl: shell("command -v curl && command -v jq")
    case .emacs: ["emacs", "-Q", "--batch", "--eval", "(progn (require 'jsonrpc) (json-serialize nil))"]
    case .jansson: shell("command -v make && command -v cc && pkg-config --exists jansson")
    case .jsonrpcGLib: shell("command -v make && command -v cc && pkg-config --exists jsonrpc-glib-1.0 gio-unix-2.0")
    case .jsonrpcclient: [Self.python, "-c", "import httpx, jsonrpcclient"]
    case .jsonrpclibPelix: [Self.python, "-c", "import jsonrpclib"]
    case .libJSONRPCCpp:
      shell("command -v make && command -v c++ && pkg-config --exists libjsonrpccpp-client jsoncpp")
    case .nc: shell("nc -h 2>&1 | grep -q OpenBSD && command -v jq")
    case .nodeHTTP, .nodeNet: ["node", "--version"]
    case .pjrpc: [Self.python, "-c", "import httpx, pjrpc"]
    case .pygls: [Self.python, "-c", "import pygls"]
    case .pythonLSPJSONRPC: [Self.python, "-c", "import pylsp_jsonrpc"]
    case .socat: shell("command -v socat && command -v jq")
    case .sourcegraphJSONRPC2:
      shell("command -v make && command -v go && test -d /usr/share/gocode/src/github.com/sourcegraph/jsonrpc2")
    case .vimLSP, .vimNL: shell("vim --version | grep -q +channel")
    }
  }

  private func shell(_ script: String) -> [String] { ["sh", "-c", script] }
}
