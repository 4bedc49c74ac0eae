// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// What `restorationctl inspect` makes.
enum InspectedPage {
  /// Parts of names and states that would mark the document if one of them ran.
  static let attacks = {
    let mark = "document.documentElement.dataset.run=1"
    return [
      "<script>\(mark)</script>", "</script><script>\(mark)</script>", "<!--<script>", "<img src=x onerror=\(mark)>",
      "\"><svg onload=\(mark)>", "' onmouseover='\(mark)", "javascript:\(mark)", "${\(mark)}", "{{\(mark)}}",
      "\u{2028}\(mark)", "\u{202e}\(mark)", "]]><script>\(mark)</script>", "&lt;script&gt;\(mark)", "`;\(mark)//",
      "\\u003cscript>\(mark)", "<base target=x>", "<style>*{display:none}</style>", "__proto__", "toString",
    ]
  }()

  /// An object for each number, with an attack wherever its application may put text.
  static func attack(_ numbers: Range<Int>, by client: WireClient) throws {
    for number in numbers {
      let attack = attacks[number % attacks.count]
      let name = attack.filter { $0 != "/" && $0 != "#" } + "\(number)"
      try client.register(name, with: ["objectClass": .string(attack)])
      try client.encode(name, state: .object([attack: .string(attack), "a": [["b": .string(attack)]]]))
    }
  }

  /// Without the right hashes nothing of the page would run.
  static func expectHashes(in page: String, scripts: Int) throws {
    let program = """
      import base64, hashlib, re, sys
      page = sys.stdin.read()
      for name in "script", "style":
        for text in re.findall(f"<{name}>(.*?)</{name}>", page, re.S):
          print(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'")
      """
    let hashes = try ChildProcess.run(["python3", "-c", program], input: page).output.split(separator: "\n")
    #expect(hashes.count == scripts + 1)
    let policy =
      "default-src 'none'; script-src \(hashes.dropLast().joined(separator: " ")); style-src \(hashes.last ?? "")"
    #expect(page.contains("content=\"\(policy); base-uri"), "InspectPage has other hashes than \(hashes)")
  }

  /// An application with a reference, a secret and a generation of an earlier run; its session stays open.
  static func fill(_ application: String = "a") throws {
    for run in 1...2 {
      let client = try broker.session(application, process: "editor")
      try client.register("Main")
      try client.register("Editor", in: "Main", with: ["objectClass": ["TextEditor", "Editor"]])
      try client.register("Login", in: "Main", with: ["confidential": true])
      try client.encode("Main", state: ["selected": ["$restorable": .path("Main", "Editor")]])
      try client.encode("Main", "Editor", state: ["run": .integer(Int64(run)), "text": "a < b"])
      try client.encode("Main", "Login", state: ["password": "hunter2"])
      if run == 1 { try client.call("goodbye", ["reason": "restart"]) } else { broker.keep(client) }
    }
  }

  static func write(_ arguments: [String] = []) throws -> String {
    let file = broker.directory.file("page.html")
    let result = try ControlTool.run(["inspect", "-o", file] + arguments, status: 0)
    #expect(result.output == file + "\n")
    #expect(Files.mode(file) == 0o600)
    return try Files.text(file)
  }

  /// The document after the page was loaded, with a script of the test at its end: for that its policy goes.
  static func dump(
    _ page: String,
    running script: String,
    _ arguments: [String] = [],
    zone: String = "UTC"
  ) throws -> String {
    let open = page.replacing(/<meta http-equiv=[^>]*>/, with: "")
      .replacing("</body>", with: "<script>\(script)</script></body>")
    let file = try broker.directory.write(open, to: "open.html")
    return try Browser.dump("file://\(file)", in: broker.directory, arguments, zone: zone)
  }

  /// What a script of the test has noted.
  static func note(_ name: String, in dump: String) -> Substring? {
    guard let start = dump.firstRange(of: " data-\(name)=\"")?.upperBound else { return nil }
    return dump[start...].prefix { $0 != "\"" }
  }
}

/// `restorationctl inspect`.
@Suite(.broker) struct InspectTests {
  // MARK: the command

  @Test func thePageGoesIntoTheRuntimeDirectoryAndItsPathIsPrinted() throws {
    try InspectedPage.fill()
    let file = broker.directory.file("a.html")
    #expect(try ControlTool.run(["inspect"], status: 0).output == file + "\n")
    #expect(Files.mode(file) == 0o600)
    let written = try ControlTool.run(["inspect", "a", "-j"], status: 0).json
    #expect(written["file"] == .string(file) && written["bytes"] == .integer(Int64(Files.size(file))))
    #expect(try ControlTool.run(["inspect", "a", "-o", "-"], status: 0).output.hasPrefix("<!DOCTYPE html>"))
    // What others have put there is replaced, and not followed.
    let precious = try broker.directory.write("precious", to: "precious")
    #expect(unlink(file) == 0 && symlink(precious, file) == 0)
    #expect(try ControlTool.run(["inspect", "a"], status: 0).output == file + "\n")
    #expect(try Files.text(precious) == "precious" && Files.text(file).hasPrefix("<!DOCTYPE html>"))
  }

  @Test func anApplicationNeedNotBeNamedIfItIsTheOnlyOne() throws {
    let none = try ControlTool.run(["inspect", "-j"], status: 4)
    #expect(try none.error["message"] == "there is no application")
    try InspectedPage.fill()
    try InspectedPage.fill("b")
    let several = try ControlTool.run(["inspect", "-j"], status: 64)
    #expect(try several.error["hint"] == "Name one of them: a, b.")
    let unknown = try ControlTool.run(["inspect", "c", "-j"], status: 4)
    #expect(try unknown.error["kind"] == "unknownApplication")
  }

  @Test func confidentialStatesAreShownOnlyIfAskedFor() throws {
    try InspectedPage.fill()
    #expect(!(try InspectedPage.write().contains("hunter2")))
    #expect(try InspectedPage.write(["--reveal"]).contains("hunter2"))
  }

  @Test func thePolicyHasTheHashesOfTheScriptAndTheStyle() throws {
    try InspectedPage.fill()
    try InspectedPage.expectHashes(in: try InspectedPage.write(), scripts: 1)
  }

  // MARK: the page

  @Test(.enabled(if: Browser.isUsable, "chromium is not installed"))
  func aPermalinkLeadsToAnObjectWithAllThatIsKnownOfIt() throws {
    try InspectedPage.fill()
    _ = try InspectedPage.write()
    let address = "file://\(broker.directory.file("page.html"))#Main/Editor"
    let dump = try Browser.dump(address, in: broker.directory)
    #expect(dump.contains("<title>a – restorationctl inspect</title>"))
    #expect(dump.matches(of: /role="treeitem"/).count == 3)
    #expect(dump.contains("aria-level=\"2\" aria-posinset=\"1\" aria-selected=\"true\" aria-setsize=\"2\""))
    #expect(dump.contains("<h2><bdi>Main/Editor</bdi></h2>"))
    for fact in ["TextEditor &lt; Editor", "editor, process ", "\"run\": 2", "\"a &lt; b\"", "its owner pushed"] {
      #expect(dump.contains(fact), "\(fact)")
    }
    #expect(dump.contains("<h3>Referred to by</h3><ul><li><a href=\"#Main\">Main</a></li></ul>"))
    #expect(dump.contains("<span>changed <a href=\"#Main/Editor\">Main/Editor</a>: run</span>"))
    #expect(dump.contains("<rect x=\"0\" y=\"20\""))
    // What has a colour, and the word of the protocol, are explained.
    for kind in ["saved", "restored", "tick", "now"] { #expect(dump.contains("<span class=\"\(kind)\">"), "\(kind)") }
    #expect(dump.contains("<dt>Verdict</dt><dd>It is saved"))
  }

  @Test(
    .enabled(if: Browser.isUsable, "chromium is not installed"),
    arguments: [
      ("UTC", "2026-07-01 00:00:00 UTC"), ("Asia/Tokyo", "2026-07-01 09:00:00 UTC+09:00"),
      ("America/St_Johns", "2026-06-30 21:30:00 UTC-02:30"),
    ]
  )
  func timesAreThoseOfTheReadersClockWithItsZone(zone: String, time: String) throws {
    try InspectedPage.fill()
    let script = "document.body.dataset.time = zoned(Date.UTC(2026, 6, 1))"
    let dump = try InspectedPage.dump(try InspectedPage.write(), running: script, zone: zone)
    #expect(InspectedPage.note("time", in: dump) == "\(time)")
    let end = time.drop { $0 != "U" }
    for place in ["id=\"facts\">3 objects", "id=\"chosen\">now", "<dt>Modified</dt><dd>20"] {
      let text = dump.components(after: place).first?.prefix { $0 != "<" }
      #expect(text?.contains(/[0-9]{2}:[0-9]{2}:[0-9]{2} UTC/) == true, "\(place): \(text ?? "")")
      if zone == "Asia/Tokyo" { #expect(text?.hasSuffix(end) == true, "\(place): \(text ?? "")") }
    }
  }

  /// On a telephone, beside another window, and in a window of its own.
  @Test(.enabled(if: Browser.isUsable, "chromium is not installed"), arguments: [(400, 3), (800, 4), (1_400, 6)])
  func columnsAreBelowTheirHeadsAndNarrowPanesOneBelowTheOther(width: Int64, columns: Int64) throws {
    try InspectedPage.fill()
    _ = try InspectedPage.write()
    let page = try BrowserPage(in: broker.directory)
    try page.resize(width: width, height: 800)
    try page.open("file://\(broker.directory.file("page.html"))")
    let found = try page.run(
      """
      (() => {
        const box = id => document.getElementById(id).getBoundingClientRect();
        const text = cell => {
          const range = document.createRange();
          range.selectNodeContents(cell.querySelector('bdi') ?? cell);
          return range.getBoundingClientRect();
        };
        const cells = row => [...row.children].filter(cell => cell.getClientRects().length);
        const row = cells(list.firstElementChild), heads = cells(document.getElementById('head'));
        const misplaced = heads.filter((head, index) => {
          const side = head.className === 'number' ? 'right' : 'left', cell = row[index];
          return Math.abs(head.getBoundingClientRect()[side] - cell.getBoundingClientRect()[side]) > 1
            || (cell.textContent && Math.abs(text(head)[side] - text(cell)[side]) > 1);
        });
        return {
          misplaced: misplaced.map(head => head.textContent).join(), columns: row.length, heads: heads.length,
          fits: document.documentElement.scrollWidth <= innerWidth, width: innerWidth,
          isBelow: box('details').top >= box('left').bottom, hasRoom: box('details').width >= 300,
          // Long lists would lose their beginning if they were in the middle.
          differencesAre: getComputedStyle(document.getElementById('difference')).display,
        };
      })()
      """
    )
    #expect(
      found == [
        "misplaced": "", "columns": .integer(columns), "heads": .integer(columns), "fits": true,
        "width": .integer(width), "isBelow": .bool(width == 400), "hasRoom": true, "differencesAre": "block",
      ]
    )
  }

  /// Neither the policy nor that everything is put in as text lets one run: the second is tried alone, too.
  @Test(.enabled(if: Browser.isUsable, "chromium is not installed"))
  func namesAndStatesOfAttackersRunNothing() throws {
    let client = try broker.session("a", process: InspectedPage.attacks[1])
    try InspectedPage.attack(0..<200, by: client)
    try client.call("saveApplicationState")
    let page = try InspectedPage.write()
    #expect(page.matches(of: /<script/).count == 2 && page.matches(of: /<\/script/).count == 2)
    let file = broker.directory.file("page.html")
    let dump = try Browser.dump("file://\(file)", in: broker.directory)
    #expect(dump.contains("200 objects") && InspectedPage.note("run", in: dump) == nil)
    let visited = try InspectedPage.dump(
      page,
      running: """
        objects.forEach((object, index) => select(index));
        for (let number = 0; number <= +slider.max; number += 1) generation(number);
        for (const item of document.querySelectorAll('a')) item.dispatchEvent(new Event('mouseover'));
        const loaded = performance.getEntriesByType('resource').length;
        document.body.dataset.visited = [...new Set(objects.map(object => object.link))].length + ' ' + loaded;
        """
    )
    #expect(InspectedPage.note("visited", in: visited) == "200 0")
    #expect(InspectedPage.note("run", in: visited) == nil)
  }

  /// By axe-core, in both colour schemes.
  @Test(
    .enabled(if: Browser.isUsable, "chromium is not installed"),
    .enabled(if: PythonPackages.areUsable("axe_core_python"), Comment(rawValue: PythonPackages.requirement)),
    arguments: [[], ["--force-dark-mode"]]
  )
  func noAccessibilityViolationIsFound(arguments: [String]) throws {
    try InspectedPage.fill()
    let find = "import importlib.util as u; print(u.find_spec('axe_core_python').submodule_search_locations[0])"
    let found = try ChildProcess.run([PythonPackages.python, "-c", find])
    let place = try #require(found.output.split(separator: "\n").first, "\(found.errors)")
    try broker.directory.write(try Files.text("\(place)/axe.min.js"), to: "axe.js")
    let dump = try InspectedPage.dump(
      try InspectedPage.write().replacing("</body>", with: "<script src=\"axe.js\"></script></body>"),
      running: """
        document.body.dataset.dark = matchMedia('(prefers-color-scheme: dark)').matches;
        axe.run().then(({ violations, passes }) => {
          document.body.dataset.violations = violations.map(({ id }) => id).join(' ');
          document.body.dataset.passes = passes.length;
        });
        """,
      arguments + ["--virtual-time-budget=10000"]
    )
    #expect(InspectedPage.note("dark", in: dump) == (arguments.isEmpty ? "false" : "true"))
    #expect(InspectedPage.note("violations", in: dump) == "")
    #expect(Int(InspectedPage.note("passes", in: dump) ?? "") ?? 0 > 10)
  }
}

/// How fast the page is.
@Suite(.broker(alone: true)) struct InspectSpeedTests {
  /// The page of many objects, as the tool makes it, with data of the test's own.
  @Test(.enabled(if: Browser.isUsable, "chromium is not installed"))
  func tenThousandObjectsAreShownWithinTwoSecondsAndScrolledByFramesOf50Milliseconds() throws {
    try InspectedPage.fill()
    let page = try InspectedPage.write()
    let dump = try InspectedPage.dump(
      page.replacing("JSON.parse(document.getElementById('data').textContent)", with: "grown()")
        .replacing("<script>", with: "<script>\(Self.growth)</script><script>"),
      running: """
        const frames = Array.from({ length: 60 }, (_, number) => {
          const begin = performance.now();
          tree.scrollTop = number * 3777;
          draw();
          tree.getBoundingClientRect();
          return performance.now() - begin;
        });
        search.value = 'editor9';
        filter();
        document.body.dataset.frame = frames.sort((left, right) => left - right)[30];
        document.body.dataset.rows = list.children.length;
        """
    )
    #expect(dump.contains("10000 objects"))
    let shown = dump.firstMatch(of: /shown in ([0-9]+) ms/).flatMap { Int($0.1) }
    let frame = InspectedPage.note("frame", in: dump).flatMap { Double($0) }
    let rows = InspectedPage.note("rows", in: dump).flatMap { Int($0) }
    #expect(try #require(shown) <= 2_000)
    #expect(try #require(frame) <= 50)
    #expect(try #require(rows) < 100)
    #expect(dump.contains("1100 objects found"))
  }

  /// A hundred windows of a hundred objects each, made of the objects of a small application.
  private static let growth = """
    const grown = () => {
      const data = JSON.parse(document.getElementById('data').textContent);
      const [main, editor] = data.objects;
      data.objects = Array.from({ length: 10000 }, (_, number) => {
        const window = 'Main' + Math.floor(number / 100), path = number % 100 ? [window, 'Editor' + number] : [window];
        const object = { ...(number % 100 ? editor : main), references: [[window]] };
        return { ...object, node: number + 1, path, depth: path.length - 1 };
      });
      return data;
    };
    """
}
