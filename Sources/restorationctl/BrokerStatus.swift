// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// What `status` and `doctor` tell of a broker and its applications.
struct BrokerStatus: JSONWritable {
  let statistics: BrokerStatistics
  let socket: String
  let sessions: Int
  let objects: Int
  let archives: Int
  let archiveBytes: Int
  var isReadOnly: Bool { statistics.gauges["readOnly"] == 1 }
  /// Applications whose archive is or was damaged, and how.
  let troubles: [(application: String, what: String)]
  /// The number of objects with withheld states, by application.
  let withheld: [(application: String, objects: Int)]

  init(socket: String, statistics: BrokerStatistics, applications: [ApplicationOverview]) {
    (self.statistics, self.socket) = (statistics, socket)
    self.sessions = applications.reduce(0) { $0 + $1.sessions }
    self.objects = applications.reduce(0) { $0 + $1.objects }
    // An application without an archive has only live sessions.
    let applications = applications.filter { $0.host == nil }
    self.archives = applications.count { $0.bytes > 0 || $0.generation != nil || $0.state != .none }
    self.archiveBytes = applications.reduce(0) { $0 + ($1.fileBytes ?? $1.bytes) }
    self.troubles = applications.compactMap { application in
      let what = application.damaged ?? (application.state == .unreadable ? "its archive cannot be read" : nil)
      return what.map { (application.application.description, $0) }
    }
    self.withheld = applications.filter { $0.withheld > 0 }.map { ("\($0.application)", $0.withheld) }
  }

  var text: String {
    var table = TextTable([TextTable.Column("", .right), TextTable.Column("")])
    table.add(["Broker:", "\(statistics.broker.name) \(statistics.broker.version)"])
    table.add(["Socket:", socket])
    table.add(["Process:", String(statistics.pid)])
    table.add(["Uptime:", Quantity.span(statistics.uptime)])
    table.add(["Sessions:", String(sessions)])
    table.add(["Objects:", String(objects)])
    table.add(["Archives:", archives == 0 ? "0" : "\(archives) (\(Quantity.bytes(archiveBytes)))"])
    if isReadOnly { table.add(["Read-only:", "states can be read, but not stored"]) }
    for (application, what) in troubles { table.add(["Damage:", "\(application.printable): \(what.printable)"]) }
    for (application, objects) in withheld {
      let what = "\(Quantity.count(objects, "state")) of \(application)"
      table.add(["Withheld:", "\(what); see restorationctl quarantine list \(application)".printable])
    }
    return table.text(header: false, width: nil)
  }

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("broker", statistics.broker.name)
      writer.member("version", statistics.broker.version)
      writer.member("socket", socket)
      writer.member("pid", statistics.pid)
      writer.member("uptimeMilliseconds", statistics.uptimeMilliseconds)
      writer.member("sessions", sessions)
      writer.member("objects", objects)
      writer.member("archives", archives)
      writer.member("bytes", archiveBytes)
      writer.member("readOnly", isReadOnly)
      writer.member(
        "damaged",
        troubles.map { application, what in
          PrintedObject { writer in
            writer.member("application", application)
            writer.member("message", what)
          }
        }
      )
      writer.member(
        "withheld",
        withheld.map { application, objects in
          PrintedObject { writer in
            writer.member("application", application)
            writer.member("objects", objects)
          }
        }
      )
    }
  }
}
