// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// systemd's own checks of the installed units.
@Suite(.scratch) struct UnitFileTests {
  /// Runs systemd-analyze for a user; it needs no manager for this.
  private static func analyze(_ installer: Installer, _ arguments: [String]) throws -> Installer.Result {
    let runtime = try installer.directory.makeDirectory("runtime-\(arguments[0])")
    return try ChildProcess.run(
      ["systemd-analyze", "--user"] + arguments,
      environment: ["HOME": installer.directory.file("home"), "XDG_RUNTIME_DIR": runtime, "SYSTEMD_COLORS": "0"]
    )
  }

  @Test(arguments: ["prefix", "with a space and 100%"])
  func systemdFindsNothingWrongWithTheUnits(_ prefix: String) throws {
    let installer = try Installer(in: directory, prefix: prefix)
    #expect(try installer.install().end == .exit(0))
    // The template runs the program that the user has put there.
    let applications = directory.file("home/.local/share/restorationd/applications")
    _ = try ChildProcess.run(["mkdir", "-p", applications])
    _ = try ChildProcess.run(["ln", "-s", "/bin/true", "\(applications)/org.example.Notes"])
    let directory = "\(installer.prefix)/share/systemd/user"
    let units = Files.list(directory).map { name in
      "\(directory)/" + name.split(separator: "@").joined(separator: "@org.example.Notes")
    }
    #expect(units.count == 10)
    let arguments = ["verify", "--recursive-errors=yes", "--man=no"]
    let result = try Self.analyze(installer, arguments + units)
    #expect(result.end == .exit(0))
    #expect(result.errors.isEmpty && result.output.isEmpty, "\(result.errors)")
  }

  @Test func theUnitsOfTheGatewayAreSoundAndExposeLittle() throws {
    let units = ["service", "socket"].map { directory.file("restoration-gateway.\($0)") }
    for unit in units {
      let text = try Files.text("\(Products.repository)/systemd/system/\(unit.split(separator: "/").last ?? "")")
      // Neither the program nor its user need be here.
      let lines = text.split(separator: "\n").map { line in
        line.hasPrefix("ExecStart=") ? "ExecStart=/bin/true" : line.hasPrefix("User=") ? "User=root" : line
      }
      try Files.write(Array(lines.joined(separator: "\n").utf8), to: unit)
    }
    let verified = try ChildProcess.run(
      ["systemd-analyze", "verify", "--recursive-errors=yes", "--man=no"] + units,
      environment: ["SYSTEMD_COLORS": "0"]
    )
    #expect(verified.end == .exit(0) && verified.errors.isEmpty, "\(verified.errors)")
    let security = ["systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=30", units[0]]
    let result = try ChildProcess.run(security, environment: ["SYSTEMD_COLORS": "0"])
    #expect(result.end == .exit(0), "\(result.output.suffix(300))")
  }

  @Test func programsOfTheGraphicalSessionAreRunLikeOthers() throws {
    let services = try ["", "-graphical"].map { kind in
      let text = try Files.text("\(Products.repository)/systemd/user/restoration-run\(kind)@.service")
      return text.split(separator: "\n").drop { $0 != "[Service]" }.prefix { $0 != "[Install]" }
    }
    #expect(services[0] == services[1] && services[0].count > 5)
  }

  @Test func theServiceIsNotMoreExposedThan63Tenths() throws {
    let installer = try Installer(in: directory)
    #expect(try installer.install().end == .exit(0))
    let unit = "\(installer.prefix)/share/systemd/user/restorationd.service"
    let result = try Self.analyze(installer, ["security", "--no-pager", "--offline=true", "--threshold=63", unit])
    #expect(result.end == .exit(0), "\(result.errors)")
    #expect(result.output.contains("Overall exposure level for restorationd.service: "), "\(result.output)")
  }
}
