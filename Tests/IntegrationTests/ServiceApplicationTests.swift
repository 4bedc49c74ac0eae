// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// An application of three units, in three languages, which the broker starts when it is restored.
@Suite(.enabled(if: UserManager.isUsable, UserManager.condition))
struct ServiceApplicationTests {
  private static let application = "org.example.Three"

  private struct Process {
    let name: String
    let language: ServingClient.Language
    let isDelegate: Bool
    let parent: [String]

    var unit: String { "three-\(name).service" }
    var objects: [String] { ["A", "B", "C"].map { "\(name)\($0)" } }
    var paths: [[String]] { [parent + [name]] + objects.map { parent + [name, $0] } }
  }

  private static let processes = [
    Process(name: "main", language: .python, isDelegate: true, parent: []),
    Process(name: "preview", language: .perl, isDelegate: false, parent: ["main"]),
    Process(name: "outline", language: .swift, isDelegate: false, parent: ["main", "preview"]),
  ]

  /// What a process is told when it starts: it registers its objects; restored, it says what has come.
  private static func script(_ process: Process, _ number: Int64) -> String {
    var open: JSONObject = [
      "do": "open", "application": .string(application), "process": .string(process.name),
      "delegate": .bool(process.isDelegate),
    ]
    if !process.isDelegate { open["delegate"] = nil }
    let parent: JSONValue = .array(process.parent.map { .string($0) })
    var objects: [JSONValue] = [
      [
        "identifier": .string(process.name), "parent": process.parent.isEmpty ? .null : parent, "await": 10_000,
        "state": ["n": .integer(number)],
      ]
    ]
    for (index, name) in process.objects.enumerated() {
      objects.append([
        "identifier": .string(name), "parent": .array((process.parent + [process.name]).map { .string($0) }),
        "state": ["n": .integer(number + Int64(index) + 1)],
      ])
    }
    let commands: [JSONObject] = [
      open, ["do": "register", "objects": .array(objects)],
      ["do": "await", "what": .string("finished \((process.parent + [process.name]).joined(separator: "/"))"), "count": 1],
      ["do": "restored"],
    ]
    return commands.map { JSONValue.object($0).text + "\n" }.joined()
  }

  private static func install(_ process: Process, _ manager: UserManager) throws {
    let command = try manager.servingCommand(process.language).map { "\"\($0)\"" }.joined(separator: " ")
    let script = "\(manager.home)/\(process.name).script"
    try manager.write(
      """
      [Service]
      ExecStart=/bin/sh -c '{ cat \(script); exec tail -f /dev/null; } | exec \(command)'
      Environment=LD_LIBRARY_PATH=\(try manager.addSwift()) PYTHONDONTWRITEBYTECODE=1 RESTORATION_UNIT=%n
      SyslogIdentifier=\(process.name)
      [X-Restoration]
      Application=\(application)

      """,
      to: "\(manager.units)/\(process.unit)"
    )
  }

  /// Waits until each process has said that it has registered its objects.
  private static func waitUntilRegistered(_ manager: UserManager) throws {
    let reader = try manager.client(.python)
    try Wait.until("all are registered") {
      let description = try? reader.call("describeApplication", ["application": .string(application)])
      let owned = description?["objects"]?.array?.filter { $0["pid"]?.integer != nil } ?? []
      return owned.count == 12
    }
    reader.end()
  }

  /// One call, and all is there again, with the states from before.
  private static func restore(_ manager: UserManager, _ number: Int64) throws {
    _ = try manager.takeJournal()
    let reader = try manager.client(.python)
    let parameters: JSONValue = ["application": .string(application), "deadlineMilliseconds": 20_000]
    let result = try reader.call("restoreApplicationState", parameters, Deadline(.seconds(40)))
    reader.end()
    let all = Set(processes.flatMap { $0.paths.map { $0.joined(separator: "/") } })
    let paths = (result["restored"]?.array ?? []).map { path in
      (path.array ?? []).compactMap(\.string).joined(separator: "/")
    }
    #expect(Set(paths) == all, "\(result.text)")
    #expect(result["absent"] == [])
    #expect(result["skipped"] == [])
    for process in processes {
      #expect(try manager.property("ActiveState", of: process.unit) == "active")
      // Its last line comes after it was told that everything is restored.
      let told = try Wait.line(manager, of: process.name) { $0["finished"] != nil }
      let objects = told["objects"]?.object
      for (index, path) in process.paths.enumerated() {
        let state = objects?[path.joined(separator: "/")]?["state"]?["n"]
        #expect(state == .integer(number + Int64(index)), "\(path): \(told.text)")
        #expect(objects?[path.joined(separator: "/")]?["times"] == 1)
      }
      #expect(told["finished"]?.array?.count == process.paths.count, "\(told.text)")
    }
  }

  @Test func oneCallBringsThreeUnitsAndAllTheirObjectsBack() async throws {
    try await withUserManager { manager in
      let number: Int64 = 100
      for process in Self.processes {
        try Self.install(process, manager)
        try manager.write(Self.script(process, number), to: "\(manager.home)/\(process.name).script")
      }
      try manager.systemctl("daemon-reload")
      for process in Self.processes { try manager.systemctl("start", process.unit) }
      try Self.waitUntilRegistered(manager)
      for round in 1...3 {
        try manager.output("restorationctl", "save", Self.application)
        // Blank starts: what comes back is what was saved.
        for process in Self.processes {
          try manager.write(Self.script(process, 0), to: "\(manager.home)/\(process.name).script")
        }
        if round < 3 {
          for process in Self.processes { try manager.systemctl("kill", "--signal=KILL", process.unit) }
          for process in Self.processes { try manager.waitUntil("failed", process.unit) }
        } else {
          try manager.logout()
          try manager.login()
        }
        try Self.restore(manager, number)
      }
    }
  }
}

extension Wait {
  /// The first line of a unit's output that is wanted.
  static func line(
    _ manager: UserManager,
    of identifier: String,
    _ isWanted: (JSONValue) -> Bool
  ) throws -> JSONValue {
    for count in 1...Int64.max {
      let fields: JSONObject = ["_TRANSPORT": "stdout", "SYSLOG_IDENTIFIER": .string(identifier)]
      let entries = try manager.journal(fields, count: count)
      for entry in entries {
        let line = entry["MESSAGE"]?.string ?? ""
        if let value = try? JSONCodec.parse(Array(line.utf8)), isWanted(value) { return value }
      }
    }
    throw TestFailure("no line")
  }
}
