// SPDX-License-Identifier: Apache-2.0

/// Every method a client may call, in the order of `Protocol/README.md`.
package enum RestorationMethods {
  package static let all: [any RestorationMethod.Type] = [
    Initialize.self,
    RegisterObjectForStateRestoration.self,
    UnregisterObject.self,
    SetRestorationParent.self,
    SetRestorationIdentifier.self,
    SetChildren.self,
    RegisterRestorationClass.self,
    RegisterDataSource.self,
    EncodeRestorableState.self,
    DecodeRestorableState.self,
    InvalidateRestorableState.self,
    SaveApplicationState.self,
    RestoreApplicationState.self,
    ExtendStateRestoration.self,
    CompleteStateRestoration.self,
    DiscardApplicationState.self,
    Goodbye.self,
    ReadArchive.self,
    ExplainRestoration.self,
    ListApplications.self,
    DescribeApplication.self,
    ListGenerations.self,
    DiffGenerations.self,
    RollBack.self,
    VerifyArchive.self,
    BackupArchive.self,
    ExportArchive.self,
    ImportArchive.self,
    ListQuarantine.self,
    ReleaseQuarantine.self,
    Subscribe.self,
    Unsubscribe.self,
    NextRequest.self,
    AnswerRequest.self,
    ReportLimits.self,
    ReportStatistics.self,
    Ping.self,
    Discover.self,
  ]

  /// Their names.
  package static let names = Set(all.map { $0.method })
}
