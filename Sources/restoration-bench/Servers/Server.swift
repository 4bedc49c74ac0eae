// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A process that answers on a socket. It ends with this value.
final class Server {
  let socket: String
  let process: Int32
  private let stage: Stage

  /// Starts it, and waits until it accepts connections.
  ///
  /// - Parameter folder: where its files are; all variables of its environment lead there.
  init(_ stage: Stage, in folder: String, socket: String, _ arguments: [String]) throws {
    (self.stage, self.socket) = (stage, socket)
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
    let names = ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"]
    let log = "\(folder).log"
    unlink(socket)
    process = try stage.spawn(arguments, environment: names.map { "\($0)=\(folder)" } + ["PATH=\(path)"], log: log)
    let end = Clock.now + 20_000_000_000
    while (try? Socket(socket)) == nil {
      guard !stage.hasEnded(process) else {
        throw Failure("\(arguments[0]) ended at its start: \(((try? Output.text(ofFile: log)) ?? "").suffix(300))")
      }
      guard Clock.now < end else { throw Failure("\(arguments[0]) does not accept connections on \(socket)") }
      usleep(100)
    }
  }

  deinit { stage.end(process) }

  /// The broker, with the limits raised that would refuse what is measured.
  ///
  /// - Parameter replica: The setting, in JSON; `nil` for none.
  static func broker(_ program: String, _ stage: Stage, in folder: String, replica: String? = nil) throws -> Server {
    let many = 65_536
    let limits = """
      {"limits":{"objectsPerApplicationMax":1048576,"archiveBytesMax":1099511627776,\
      "allArchivesBytesMax":1125899906842624,"connectionsMax":\(many),"connectionsPerProcessMax":\(many),\
      "connectionsPerApplicationMax":\(many),"applicationsMax":\(many),\
      "sessionsPerApplicationMax":\(many),"sessionsPerProcessMax":\(many)}\(replica.map { ",\"replica\":\($0)" } ?? "")}
      """
    let configuration = "\(folder)/limits.json"
    try Output.write(limits, toFile: configuration)
    let socket = "\(folder).sock"
    return try Server(
      stage,
      in: folder,
      socket: socket,
      [
        program, "--socket", socket, "--archives", "\(folder)/archives", "--config", configuration,
        "--log-level", "error",
      ]
    )
  }
}
