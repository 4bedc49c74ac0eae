// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// The libraries in the event loops of toolkits.
@Suite(.timeLimit(.minutes(10))) struct ToolkitTests {
  /// Debian's own, for which Debian has packages of the toolkits.
  private static let python = "/usr/bin/python3"

  private static func has(_ module: String) -> Bool {
    if Environment.isCI { return true }
    return (try? ChildProcess.run([python, "-c", "import \(module)"]))?.end == .exit(0)
  }

  @Test(
    "A session in the loop of GLib or Qt saves and is not held up by its broker",
    .scratch,
    .enabled(if: has("gi, PySide2"), "needs python3-gi and python3-pyside2.qtcore; Tests/run.sh installs them"),
    arguments: ["glib", "pyside"]
  )
  func loopsGoOn(_ toolkit: String) throws {
    let program = "\(Products.repository)/Tests/Clients/loops/loops.py"
    let result = try ChildProcess.run(
      [Self.python, "-B", program, toolkit, Products.broker, directory.path],
      environment: ["PYTHONPATH": LibraryClient.module],
      Deadline(.seconds(120))
    )
    #expect(result.end == .exit(0), "\(result.output)\(result.errors)")
    print(result.output)
  }

  private static let hasQt =
    Environment.isCI || (try? ChildProcess.run(["pkg-config", "--exists", "Qt6Core", "jansson"]))?.end == .exit(0)

  @Test(
    "A program in C++ saves in the loop of Qt, and goes on there with the next broker",
    .broker,
    .enabled(if: hasQt, "needs qt6-base-dev; Tests/run.sh installs it")
  )
  func theLoopOfQtGoesOn() throws {
    let program = broker.directory.file("qt")
    let clients = "\(Products.repository)/Protocol/clients/c"
    // The flags are there for the headers of this project, not for those of Qt.
    let compile = """
      g++ -g -fPIC -Wall -Wextra -Wshadow -Werror -fsanitize=address,undefined -I "$0" -o "$1" "$2" -x c "$0/restoration.c" \
        -x none $(pkg-config --cflags Qt6Core jansson | sed 's/-I/-isystem /g') $(pkg-config --libs Qt6Core jansson)
      """
    let source = "\(Products.repository)/Tests/Clients/loops/qt.cpp"
    let compiled = try ChildProcess.run(["sh", "-c", compile, clients, program, source], Deadline(.seconds(120)))
    try #require(compiled.end == .exit(0), "\(compiled.errors)")
    let errors = broker.directory.file("qt.log")
    let process = try ChildProcess([program, broker.socket], errors: errors)
    #expect(try process.output?.next() == "saved 1")
    try broker.crashAndRestart()
    #expect(try process.output?.next() == "resumed 1")
    #expect(try process.output?.next() == "saved 2")
    #expect(try process.waitForEnd() == .exit(0))
    #expect(try Files.text(errors).isEmpty)
    let object: JSONValue = ["application": "org.example.Qt", "object": ["Note"]]
    #expect(try broker.connect().call("decodeRestorableState", object)["state"] == ["n": 2])
  }

  @Test(
    "A mail reader in GTK comes back from SIGKILL in its windows, on the screen and in the tree, and is not held up",
    .scratch,
    .enabled(if: hasGTK, gtkRequirement)
  )
  func theMailReaderComesBack() throws {
    try run("sample.py", [Products.broker, directory.path], expecting: "all came back")
  }

  @Test(
    "The mail reader is built as a Flatpak, and saves from its sandbox through the broker's socket",
    .scratch,
    .enabled(if: Environment.isLong && geteuid() == 0, "builds a Flatpak as root, in the long form"),
    .enabled(if: Environment.isCI || Files.exists("/usr/bin/flatpak-builder"), "needs flatpak-builder and elfutils")
  )
  func theFlatpakSaves() throws {
    let clients = "\(Products.repository)/Tests/Clients"
    let programs = try Installer(in: directory).programs
    let command = ["\(clients)/gtk/screen.sh", "\(clients)/flatpak/build.sh", directory.path, programs]
    let built = try ChildProcess.run(["unshare", "--mount", "sh"] + command, Deadline(.seconds(300)))
    #expect(built.end == .exit(0) && built.output.contains(#""letter":"Letter 1""#), "\(built.output)\(built.errors)")
  }

  @Test(
    "1,000 random a{sv} go through the GTK module and the broker, and come back as they were",
    .broker,
    .enabled(if: hasGTK, gtkRequirement)
  )
  func variantsComeBack() throws {
    let seed = Int.random(in: 1...1_000_000)
    try run("variants.py", ["1000", "\(seed)"], expecting: "1000 of 1000 came back", socket: broker.socket)
  }

  @Test(
    "A GTK program that names Gtk.Application in its methods, closes a saved window, or is killed keeps the others",
    .broker,
    .enabled(if: hasGTK, gtkRequirement)
  )
  func faultyProgramsKeepTheirWindows() throws {
    try run("faults.py", [], expecting: "2 windows came back", socket: broker.socket)
  }

  @Test(
    "R35 A GTK program whose state is withheld says so, with the command that gives it back",
    .broker,
    .enabled(if: hasGTK, gtkRequirement)
  )
  func whatIsWithheldIsTold() throws {
    try broker.withhold("main", of: "org.example.Withheld")
    let told = try run("faults.py", ["withheld"], socket: broker.socket)
    #expect(told.contains("restorationctl quarantine release org.example.Withheld 'main'\n"), "\(told)")
  }

  @Test(
    "Windows of GTK and of libadwaita come back from SIGKILL with their sizes, whatever sizes their program gives them",
    .broker,
    .enabled(if: hasGTK && has("gi; gi.require_version('Adw', '1')"), "needs gir1.2-adw-1; Tests/run.sh installs it"),
    arguments: ["gtk", "adw"]
  )
  func sizesComeBack(_ toolkit: String) throws {
    try run("sizes.py", [toolkit], expecting: "2 windows came back with their sizes", socket: broker.socket)
  }

  private static var hasGTK: Bool {
    has("gi; gi.require_version('Gtk', '4.0')")
      && (Environment.isCI || (try? ChildProcess.run(["sh", "-c", tools]))?.end == .exit(0))
  }

  private static let tools = "command -v Xvfb && command -v g-ir-scanner && pkg-config --exists gtk4 jansson"

  private static let gtkRequirement: Comment =
    "needs libgtk-4-dev, gobject-introspection, python3-gi and xvfb; Tests/run.sh installs them"

  /// `Protocol/clients/gtk`, built once a run, without any warning; its directory.
  private static let module = Result {
    let output = "\(Products.directory)/gtk"
    let made = try ChildProcess.run(
      ["make", "-C", "\(Products.repository)/Protocol/clients/gtk", "OUT=\(output)", "CFLAGS=-g -O1 -Werror"],
      Deadline(.seconds(120))
    )
    guard made.end == .exit(0) else { throw TestFailure("the GTK module is not built: \(made.output)\(made.errors)") }
    return output
  }

  /// Runs a program of `Tests/Clients/gtk`, and expects its last line to begin so; what it has told its user.
  @discardableResult
  private func run(
    _ program: String,
    _ arguments: [String],
    expecting: String? = nil,
    socket: String? = nil
  ) throws -> String {
    let module = try Self.module.get()
    let path = "\(Products.repository)/Tests/Clients/gtk/\(program)"
    // The sample brings a screen of its own.
    let screen = socket == nil ? [] : ["sh", "\(Products.repository)/Tests/Clients/gtk/screen.sh"]
    let result = try ChildProcess.run(
      screen + [Self.python, "-B", path] + arguments,
      environment: [
        "GI_TYPELIB_PATH": module, "LD_LIBRARY_PATH": module, "RESTORATIOND_SOCKET": socket, "GDK_BACKEND": "x11",
        "GSK_RENDERER": "cairo", "LC_ALL": "C.UTF-8", "DBUS_SESSION_BUS_ADDRESS": "disabled:",
      ],
      Deadline(.seconds(180))
    )
    #expect(result.end == .exit(0), "\(arguments): \(result.output)\(result.errors)")
    if let expecting {
      #expect(result.output.split(separator: "\n").last?.hasPrefix(expecting) == true, "\(result.output)")
    }
    print(result.output)
    return result.errors
  }

  @Test(
    "The loops have types that hold",
    .enabled(if: PythonPackages.areUsable("mypy"), Comment(rawValue: PythonPackages.requirement))
  )
  func typesHold() throws {
    let checked = try ChildProcess.run(
      [
        PythonPackages.program("mypy"), "--strict", "--cache-dir=/dev/null",
        "\(LibraryClient.module)/restorationd/loops.py",
      ],
      environment: ["MYPYPATH": LibraryClient.module],
      Deadline(.seconds(120))
    )
    #expect(checked.end == .exit(0), "\(checked.output)")
  }
}
