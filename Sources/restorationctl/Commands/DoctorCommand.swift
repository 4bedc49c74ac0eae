// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationWire

struct DoctorCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Find problems, and the commands that fix them.",
    usage: "restorationctl doctor [<option> ...]",
    discussion: """
      Examples:
        restorationctl doctor
        restorationctl doctor -j | jq '.findings[] | select(.verdict == "trouble")'

      Looks at the broker and its socket, damaged archives, withheld states, the
      fleet's store, units, PATH, linger, and the restorers of this terminal. It
      changes nothing. A note is about something that may be intended. Exit status
      1 means that there is a problem. Below each problem is a command.
      """
  )

  @OptionGroup var options: CommonOptions

  func run() async throws {
    var findings = await Finding.ofBroker(connection)
    // A socket that is named is not that of the units.
    if connection.isUsual { findings += Finding.ofUnits() }
    findings.append(Finding.ofPath())
    if connection.isUsual, let linger = Finding.ofLinger() { findings.append(linger) }
    findings += Finding.ofTerminal()
    let document = PrintedObject { $0.member("findings", findings) }
    if output.says(isDone: findings.isWell) {
      try output.print(document, or: findings.text(legend: !legend.hidesLegend))
    }
    if !findings.isWell { throw ExitStatus.refused }
  }
}
