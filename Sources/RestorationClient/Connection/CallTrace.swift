// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

// The package trait Tracing, which is off by default. Without it no call has a trace, and none is read.
#if Tracing
internal import Instrumentation

/// The place of a call in a trace, as the program's instrument writes and reads it (`InstrumentationSystem`).
struct CallTrace: Sendable {
  private let context: TraceContext?

  static let none = CallTrace(context: nil)

  /// The place of the task that makes a call now.
  static var current: CallTrace {
    guard let current = ServiceContext.current else { return none }
    var fields: [String: String] = [:]
    InstrumentationSystem.instrument.inject(current, into: &fields, using: FieldInjector())
    return CallTrace(context: TraceContext(traceparent: fields["traceparent"], tracestate: fields["tracestate"]))
  }

  /// The parameters with their place in a trace. Those by position have none, and those that would be too long with it.
  func added(to parameters: JSONText?, of method: String, within limits: Limits) -> JSONText? {
    guard let traced = context?.added(to: parameters) else { return parameters }
    return FrameCheck(method: method, parameters: traced).passes(limits) ? traced : parameters
  }

  /// Answers a call of the broker in the trace that it names, if any, and not in that of the task that has connected.
  static func following<Answer>(
    _ request: Request,
    isolation: isolated (any Actor)? = #isolation,
    _ answer: () async -> Answer
  ) async -> Answer {
    let context = TraceContext(request.parameters).map { trace in
      var fields = ["traceparent": trace.traceparent]
      fields["tracestate"] = trace.tracestate
      var context = ServiceContext.topLevel
      InstrumentationSystem.instrument.extract(fields, into: &context, using: FieldExtractor())
      return context
    }
    return await ServiceContext.withValue(context, isolation: isolation, operation: answer)
  }
}

private struct FieldInjector: Injector {
  func inject(_ value: String, forKey key: String, into fields: inout [String: String]) { fields[key] = value }
}

private struct FieldExtractor: Extractor {
  func extract(key: String, from fields: [String: String]) -> String? { fields[key] }
}
#else
/// No place in a trace.
struct CallTrace: Sendable {
  static let none = CallTrace()
  static var current: CallTrace { none }

  func added(to parameters: JSONText?, of method: String, within limits: Limits) -> JSONText? { parameters }

  static func following<Answer>(
    _ request: Request,
    isolation: isolated (any Actor)? = #isolation,
    _ answer: () async -> Answer
  ) async -> Answer { await answer() }
}
#endif
