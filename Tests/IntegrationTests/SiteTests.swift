// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport
internal import Testing

/// `systemd/site.sh` makes the site. What it gives DocC for the reference, `TutorialTests` gives it too.
@Suite(
  .timeLimit(.minutes(3)),
  .enabled(
    if: Files.exists("/usr/bin/sphinx-build") || Environment.isCI,
    "needs python3-myst-parser; Tests/run.sh installs it"
  )
) struct SiteTests {
  @Test("The site has every page and picture, and a navigation in the order of the protocol's first page", .scratch)
  func theSiteIsComplete() throws {
    let (site, made) = try makeSite(of: Products.repository)
    try #require(made.end == .exit(0), "\(made.output)\(made.errors)")
    let start = try Files.text("\(site)/index.html")
    #expect(start.contains(#"src="_images/demonstration.svg""#) && Files.exists("\(site)/_images/demonstration.svg"))
    #expect(start.contains(#"href="Protocol/service.html#debian-packages""#))
    let pages = Files.tree("\(Products.repository)/Protocol").filter { $0.hasSuffix(".md") }
    #expect(pages.count > 60)
    for page in pages { #expect(Files.exists("\(site)/Protocol/\(page.dropLast(3)).html"), "\(page)") }
    let entries = start.matches(of: /<li class="toctree-l1">\s+<a class="reference internal" href="([^"]+)"/)
    let first = ["README", "calls", "notifications", "errors", "limits", "rules"].map { "Protocol/\($0).html" }
    #expect(entries.prefix(first.count).map { String($0.1) } == first)
  }

  @Test("The page whose link leads nowhere is named with the link, and nothing is written", .scratch)
  func aBrokenLinkIsNamed() throws {
    for folder in ["Protocol", "Tests", "systemd"] { _ = try directory.makeDirectory(folder) }
    for file in ["Tests/packages.sh", "systemd/site", "systemd/site.sh"] {
      try #require(symlink("\(Products.repository)/\(file)", directory.file(file)) == 0)
    }
    let one = """
      # One

      [a heading](Protocol/README.md#a-heading), [no page](Protocol/gone.md)

      [no heading](Protocol/README.md#gone)
      """
    _ = try directory.write(one, to: "README.md")
    let two = """
      # Two
      ## A heading
      [a page](../README.md), [no file](gone.json)
      """
    _ = try directory.write(two, to: "Protocol/README.md")
    let (site, made) = try makeSite(of: directory.path)
    #expect(made.end == .exit(1))
    let named = made.errors.split(separator: "\n").filter { $0.contains(": WARNING: ") }
    let expected = [
      ("/Protocol/README.md:3: ", "gone.json"), ("/README.md:3: ", "Protocol/gone.md"),
      ("/README.md:5: ", "Protocol/README.md#gone"),
    ]
    #expect(named.count == expected.count, "\(made.errors)")
    for (page, link) in expected {
      #expect(named.contains { $0.contains(page) && $0.hasSuffix(link) }, "\(page)\(link): \(named)")
    }
    #expect(Files.list(site).isEmpty)
  }

  /// Makes the pages of a repository by the command that it has for them.
  private func makeSite(of repository: String) throws -> (site: String, made: Installer.Result) {
    let site = directory.file("site")
    let command = ["\(repository)/systemd/site.sh", "--no-reference", "--output", site]
    return (site, try ChildProcess.run(command, Deadline(.seconds(120))))
  }
}
