// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// `systemd/release.sh` makes what a release attaches, so that nobody needs a compiler for it.
@Suite(.timeLimit(.minutes(20))) struct ReleaseTests {
  private static let installed = "\(Products.repository)/.build/installed"
  private static let isBuilt = Files.exists("\(installed)/workspace-state.json")

  @Test(.scratch) func aReleaseIsNotWrittenAmongOtherFiles() throws {
    _ = try directory.makeDirectory("other")
    let result = try Installer(in: directory).run("release", ["--output", directory.path])
    #expect(result.end == .exit(1) && result.errors.contains("is not empty; remove what is in it, or name another"))
  }

  /// What is linked statically has to be named with its license, too.
  @Test(.scratch, .enabled(if: isBuilt, "nothing was built for installing"))
  func theBillNamesWhatTheProgramsAreMadeOf() throws {
    let listed = try ChildProcess.run(
      ["swift", "package", "--scratch-path", Self.installed, "show-dependencies", "--format", "json"],
      directory: Products.repository
    )
    let dependencies = directory.file("dependencies.json")
    try Files.write(Array(listed.output.utf8), to: dependencies)
    let library = try #require(
      try ChildProcess.run(["ldd", Products.broker]).output.firstMatch(of: /=> (\S+libjansson\S+)/)
    )
    let program = ["python3", "-B", "\(Products.repository)/systemd/release/bill.py"]
    let made = try ChildProcess.run(program + [Products.broker, dependencies, String(library.1)])
    let bill = try JSONCodec.parse(made.output.utf8)
    #expect(bill["bomFormat"] == "CycloneDX" && bill["metadata"]?["component"]?["version"] == "0.1.0")
    let components = try #require(bill["components"]?.array, "\(made.errors)")
    let names = Set(components.compactMap { $0["name"]?.string })
    let packages = Set(
      components.compactMap { $0["purl"]?.string?.firstMatch(of: /^pkg:swift.github.com.[a-z-]+.([a-z-]+)@[0-9.]+$/) }
        .map { String($0.1) }
    )
    #expect(packages.isSuperset(of: ["swift-argument-parser", "swift-atomics", "swift-nio"]))
    #expect(names == packages.union(["libjansson4", "swift"]))
    // Only an optional trait of the package brings it.
    #expect(!names.contains("swift-distributed-tracing"))
    #expect(components.contains { $0["purl"]?.string?.hasPrefix("pkg:deb/debian/libjansson4@2.") == true })
    let licenses = try Files.text("\(Products.repository)/systemd/debian/copyright")
    for package in packages { #expect(licenses.contains(package), "\(package)") }
  }

  @Test func thePageForCIHasTheSameCommandsForAllServices() throws {
    #expect(try Self.commands == ["pip install 'restorationd[testing]'", "pytest"])
  }

  /// The commands of the page for CI, which are the same for each service.
  private static var commands: [String] {
    get throws {
      let services = try TutorialPage("Protocol/ci.md").blocks("yaml").map { block in
        block.matches(of: /(?m)^ +- (?:run: )?([a-z]+(?: .*)?)$/).map { String($0.1) }
      }
      guard services.count == 2, services[0] == services[1] else {
        throw TestFailure("the files of Protocol/ci.md have other commands: \(services)")
      }
      return services[0]
    }
  }

  /// Each file of a release is used as its user would, in a root that has Debian's essential packages, apt and Python.
  @Test(
    .scratch,
    .enabled(if: Products.isOptimised && Environment.isLong, "makes a release, in the long form"),
    .enabled(if: Packages.canMakeDebian, "needs mmdebstrap and a mirror of Debian"),
    .enabled(if: PythonPackages.areUsable("auditwheel", "twine"), Comment(rawValue: PythonPackages.requirement))
  )
  func aReleaseWorksWhereNothingElseIs() throws {
    let output = directory.file("release")
    let installer = try Installer(in: directory)
    let made = try installer.run(
      "release",
      ["--from", installer.programs, "--output", output],
      Deadline(.seconds(600))
    )
    try #require(made.end == .exit(0), "\(made.output.suffix(2_000))\(made.errors)")
    let wheel = try Self.expectFiles(of: output)
    try Self.expectWheels(of: output, wheel)
    try tryPrograms(of: output)
    try tryImage(of: output)
  }

  /// Gives the name of the wheel with the programs.
  private static func expectFiles(of output: String) throws -> String {
    let files = Files.list(output)
    let packages = files.filter { $0.hasSuffix(".deb") }.map { String($0.prefix { $0 != "_" }) }
    #expect(packages.sorted() == Packages.names)
    let machine = try Packages.run(["uname", "-m"]).filter { $0 != "\n" }
    let wheel = try #require(files.first { $0.hasPrefix("restorationd_bin-") })
    let others = [
      "Dockerfile", "SHA256SUMS", "restorationd-0.1.0-\(machine)-linux-gnu.tar.gz",
      "restorationd-0.1.0-\(machine).cdx.json",
      "restorationd-0.1.0-\(machine).oci.tar", "restorationd-0.1.0-py3-none-any.whl", "restorationd-0.1.0.tar.gz",
      wheel,
    ]
    #expect(Set(files.filter { !$0.hasSuffix(".deb") }) == Set(others))
    let sums = try ChildProcess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], directory: output)
    let lines = try Files.text("\(output)/SHA256SUMS").split(separator: "\n")
    #expect(sums.end == .exit(0) && lines.count == files.count - 1, "\(sums.output)")
    return wheel
  }

  private static func expectWheels(of output: String, _ wheel: String) throws {
    let paths = [wheel, "restorationd-0.1.0-py3-none-any.whl", "restorationd-0.1.0.tar.gz"].map { "\(output)/\($0)" }
    try Packages.run([PythonPackages.program("twine"), "check", "--strict"] + paths)
    try Packages.run([PythonPackages.program("check-wheel-contents")] + paths.prefix(2))
    let tag = try #require(wheel.firstMatch(of: /-(manylinux_\w+)\.whl$/)).1
    let shown = try Packages.run([PythonPackages.program("auditwheel"), "show", paths[0]])
    #expect(shown.split(whereSeparator: \.isWhitespace).joined(separator: " ").contains(#"platform tag: "\#(tag)"."#))
  }

  /// The archive is installed by a user, and the commands of the page for CI are run as they stand there.
  private func tryPrograms(of output: String) throws {
    try writeJob(to: directory.makeDirectory("job"))
    let script = """
      set -eux
      tar -C /tmp -xf /release/restorationd-*-linux-gnu.tar.gz
      useradd --create-home user
      su user -c '
        set -eux
        /tmp/restorationd-*/install.sh --no-enable
        mkdir -m 700 /tmp/r; export RESTORATIOND_SOCKET=/tmp/r/s
        ~/.local/bin/restorationd --archives /tmp/r/a & broker=$!
        until [ -S /tmp/r/s ]; do :; done
        ~/.local/bin/restorationctl put -r org.example.Note Note /value 17
        test "$(~/.local/bin/restorationctl get -r org.example.Note Note /value)" = 17
        kill $broker; wait
        /tmp/restorationd-*/bin/restorationctl terminal install bash --yes
        grep "/tmp/restorationd-.*/restorers/terminal/shell.bash" ~/.bashrc
        /tmp/restorationd-*/bin/restorationctl terminal uninstall bash --yes
        /tmp/restorationd-*/uninstall.sh; test ! -e ~/.local'
      python3 -m venv --system-site-packages /venv
      cd /job
      export PATH=/venv/bin:$PATH PIP_NO_INDEX=1 PIP_FIND_LINKS=/release
      \(try Self.commands.joined(separator: "\n"))
      """
    _ = try directory.write(script, to: "job/try")
    let hook = try directory.write(
      """
      set -eux; cp -R '\(output)' '\(directory.file("job"))' "$1/"
      chroot "$1" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin sh /job/try
      """,
      to: "hook"
    )
    let tried = try ChildProcess.run(
      ["mmdebstrap", "--variant=apt", "--include=python3-venv,python3-pytest", "--customize-hook=sh '\(hook)' \"$1\""]
        + ["bookworm", "/dev/null"],
      Deadline(.seconds(500))
    )
    #expect(tried.end == .exit(0), "\(tried.output.suffix(2_000))\(tried.errors.suffix(4_000))")
  }

  private func tryImage(of output: String) throws {
    let root = directory.file("bundle/rootfs")
    try writeJob(to: directory.makeDirectory("image-job"))
    let script = """
      set -eu; mkdir image; tar -C image -xf '\(output)'/restorationd-*.oci.tar
      umoci unpack --image image:0.1.0 bundle
      cp -R image-job '\(root)/job'
      mount -t proc proc '\(root)/proc'; mount --rbind /dev '\(root)/dev'
      chroot '\(root)' env -i HOME=/root PATH=/usr/bin:/bin sh -c 'restorationctl --version && cd /job && python3 -m pytest'
      """
    let tried = try ChildProcess.run(
      ["unshare", "--mount", "sh", "-c", script],
      directory: directory.path,
      Deadline(.seconds(240))
    )
    #expect(tried.end == .exit(0) && tried.output.contains("1 passed"), "\(tried.output)\(tried.errors)")
  }

  /// The program and the test of the page of the Python library.
  private func writeJob(to folder: String) throws {
    let page = try TutorialPage("Protocol/clients/python/README.md").section("## Prove it in your tests")
    let blocks = page.blocks("python")
    try Files.write(Array(blocks[0].utf8), to: "\(folder)/words.py")
    try Files.write(Array(blocks[1].utf8), to: "\(folder)/test_words.py")
  }
}
