// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// A family of metrics, as the parser reads it that Prometheus publishes. That of the older format reads the same.
struct MetricFamily {
  struct Sample: Equatable {
    let name: String
    let labels: [String: String]
    let value: Double
  }

  let name: String
  let kind: String
  let unit: String
  let help: String
  let samples: [Sample]

  private init(_ value: JSONValue) {
    name = value["name"]?.string ?? ""
    kind = value["kind"]?.string ?? ""
    unit = value["unit"]?.string ?? ""
    help = value["help"]?.string ?? ""
    samples = (value["samples"]?.array ?? []).map { sample in
      let labels = sample["labels"]?.object?.members ?? []
      return Sample(
        name: sample["name"]?.string ?? "",
        labels: Dictionary(uniqueKeysWithValues: labels.map { ($0.name, $0.value.string ?? "") }),
        value: Double(sample["value"]?.string ?? "") ?? .nan
      )
    }
  }

  private static let parser = """
    import json, sys
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    from prometheus_client.parser import text_string_to_metric_families as families_of_older_format
    text = sys.stdin.buffer.read().decode()
    def values(families):
        return [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]
    assert values(families_of_older_format(text)) == values(text_string_to_metric_families(text))
    print(json.dumps([
        {"name": family.name, "kind": family.type, "unit": family.unit, "help": family.documentation, "samples": [
            {"name": sample.name, "labels": sample.labels, "value": repr(sample.value)} for sample in family.samples]}
        for family in text_string_to_metric_families(text)]))
    """

  /// The families of a text by name.
  static func all(in text: String) throws -> [String: MetricFamily] {
    let result = try ChildProcess.run([PythonPackages.python, "-c", parser], input: text)
    try #require(result.end == .exit(0), "\(result.errors)\n\(text)")
    let families = try JSONCodec.parse(Array(result.output.utf8)).array ?? []
    return Dictionary(families.map { MetricFamily($0) }.map { ($0.name, $0) }) { first, _ in
      Issue.record("\(first.name) is there twice")
      return first
    }
  }
}

extension MetricFamily {
  /// The page's families, each as its row describes it.
  static func promised() throws -> [String: String] {
    let rows = try Files.text("\(Products.repository)/Protocol/metrics.md").matches(
      of: /\| `(restorationd_\w+)` \| (counter|gauge|histogram) \|/
    )
    return Dictionary(uniqueKeysWithValues: rows.map { (String($0.1), String($0.2)) })
  }
}
