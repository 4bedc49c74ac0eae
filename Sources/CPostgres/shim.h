// SPDX-License-Identifier: Apache-2.0

#ifndef RESTORATION_CPOSTGRES_SHIM_H
#define RESTORATION_CPOSTGRES_SHIM_H

#include <libpq-fe.h>

/// `PG_DIAG_SQLSTATE` and `PG_DIAG_SEVERITY_NONLOCALIZED` are characters, which Swift does not import as numbers.
static inline const char *restoration_pq_state(const PGresult *result) {
  return PQresultErrorField(result, PG_DIAG_SQLSTATE);
}

static inline const char *restoration_pq_severity(const PGresult *result) {
  return PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
}

static inline const char *restoration_pq_message(const PGresult *result) {
  return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
}

#endif
