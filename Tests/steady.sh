#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Measures a database in its steady state: Tests/steady.sh GATEWAY [USERS [RATE [MINUTES]]]
#
# GATEWAY is the program restoration-gateway. USERS (2000) have 3 archives of 256 KiB each, which are already as full of
# batches as they are on average. Then RATE (1200) appends of 1 KiB states a second come for MINUTES (60), at random
# archives, as a host sends them. An archive whose batches exceed 1 MiB and twice its size gets a snapshot, which
# deletes them: as many rows die as are added. PostgreSQL and a synchronous standby run here with the settings of
# Protocol/scaling.md, 2 GB of shared buffers, and checkpoints after 4 GB of log. Each minute a line gives the sizes of
# tables and indexes, dead rows, runs of autovacuum, the age of transaction numbers, and the rate and latency.
set -euo pipefail

[[ $# -ge 1 && -x $1 ]] || { sed -n '4,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 64; }
unset PGPORT PGOPTIONS
gateway="$(realpath "$1")" users="${2:-2000}" rate="${3:-1200}" minutes="${4:-60}"
programs="$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -n 1)"
[[ -n $programs ]] || { echo "PostgreSQL is not installed: apt-get install postgresql" >&2; exit 69; }

as_server=()
((EUID != 0)) || as_server=(setpriv --reuid=postgres --regid=postgres --clear-groups)
folder="$(mktemp -d)"
((EUID != 0)) || chown postgres:postgres "$folder"
stop() {
  for server in second first; do
    [[ ! -e $folder/$server/postmaster.pid ]] ||
      "${as_server[@]}" "$programs/pg_ctl" stop --silent --mode=immediate --pgdata="$folder/$server" || true
  done
  rm -rf "$folder"
}
trap stop EXIT

start() {  # NAME PORT
  "${as_server[@]}" "$programs/pg_ctl" start --silent --wait --pgdata="$folder/$1" --log="$folder/$1.log" \
    --options="-k $folder -p $2 -c listen_addresses="
}
query() { "$programs/psql" -XqAt -v ON_ERROR_STOP=1 -h "$folder" -U admin -d postgres "$@"; }

"${as_server[@]}" "$programs/initdb" --pgdata="$folder/first" --username=admin --auth=trust --encoding=UTF8 --locale=C \
  >/dev/null
cat >>"$folder/first/postgresql.conf" <<'SETTINGS'
shared_buffers = 2GB
max_wal_size = 4GB
autovacuum_max_workers = 6
autovacuum_freeze_max_age = 1000000000
SETTINGS
start first 5432
"$gateway" schema | query -f - >/dev/null
query -c "ALTER TABLE restoration.holder SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)"

# Bodies are random, because encrypted ones do not compress. Archives begin with an even spread of batches, up to the
# size at which a snapshot replaces them: so they are filled at any moment of a steady state.
query -v users="$users" >/dev/null <<'SQL'
CREATE SCHEMA load;
CREATE TABLE load.text AS SELECT string_agg(sha256(gen_random_uuid()::text::bytea), '') AS bytes
  FROM generate_series(1, 8192);
SELECT restoration.admit('bench', 'user' || number) FROM generate_series(1, :users) AS number;
INSERT INTO restoration.holder (holder, owner, host, term)
  SELECT 'user' || number, 'user' || number, 'bench', 15000 FROM generate_series(1, :users) AS number;
INSERT INTO restoration.archive (owner, application, history, lease, holder, host, since, base, base_change,
    base_attempt, parts, base_bytes)
  SELECT 'user' || user_number, 'org.example.App' || application, gen_random_uuid(), gen_random_uuid(),
    'user' || user_number, 'bench', now(), 1, gen_random_uuid(), 1, 1, 262144
  FROM generate_series(1, :users) AS user_number, generate_series(1, 3) AS application;
INSERT INTO restoration.part SELECT archive, 1, 0, (SELECT bytes FROM load.text) FROM restoration.archive;
INSERT INTO restoration.batch
  SELECT archive, place, place + 1, gen_random_uuid(), '', (SELECT substr(bytes, 1, 1110) FROM load.text),
    1110 * place
  FROM restoration.archive, generate_series(1, (archive * 7919 % 1417)::int) AS place;

-- One append, and if it is time the snapshot. A client knows where its archive ends; this one looks.
CREATE FUNCTION load.step(_archive bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE _row restoration.archive; _end bigint; _bytes bigint; _outcome text;
BEGIN
  -- One client an archive: the second of two would be refused, because its batch begins where the first one's does.
  IF NOT pg_try_advisory_xact_lock(_archive) THEN RETURN 'busy'; END IF;
  SELECT * INTO _row FROM restoration.archive WHERE archive = _archive;
  SELECT upto INTO _end FROM restoration.tip(_archive);
  SELECT outcome INTO _outcome FROM restoration.append_1(_row.owner, _archive, _row.lease, _end, _end + 1,
    gen_random_uuid(), '', (SELECT substr(bytes, 1, 1110) FROM load.text), false);
  IF _outcome <> 'stored' THEN RAISE EXCEPTION 'append: %', _outcome; END IF;
  SELECT last.total - first.total INTO _bytes
  FROM (SELECT total FROM restoration.batch WHERE archive = _archive ORDER BY after DESC LIMIT 1) AS last,
    (SELECT total FROM restoration.batch WHERE archive = _archive ORDER BY after LIMIT 1) AS first;
  IF _bytes <= 1048576 + 2 * 262144 THEN RETURN 'stored'; END IF;
  SELECT outcome INTO _outcome FROM restoration.snapshot_1(_row.owner, _archive, _row.lease,
    (random() * 1e15)::bigint + 2, _end + 1, gen_random_uuid(), 1, 0, 1, (SELECT bytes FROM load.text), false);
  IF _outcome <> 'stored' THEN RAISE EXCEPTION 'snapshot: %', _outcome; END IF;
  RETURN 'compacted';
END $$;
GRANT USAGE ON SCHEMA load, restoration TO bench;
GRANT SELECT ON load.text TO bench;
GRANT SELECT ON ALL TABLES IN SCHEMA restoration TO bench;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA restoration TO bench;
VACUUM (ANALYZE, FREEZE);
CHECKPOINT;
SQL

"${as_server[@]}" "$programs/pg_basebackup" --pgdata="$folder/second" --host="$folder" --username=admin \
  --write-recovery-conf --checkpoint=fast
start second 5433
query -c "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'" -c "SELECT pg_reload_conf()" >/dev/null
until [[ $(query -c "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'") == 1 ]]; do
  query -c "SELECT pg_sleep(0.1)" >/dev/null
done

# A renewal of each broker each 10 s, as many a second as that makes, beside the appends.
first="$(query -c 'SELECT min(archive) FROM restoration.archive')"
cat >"$folder/append.sql" <<SQL
\set archive random($first, $first + 3 * $users - 1)
SELECT load.step(:archive);
SQL
cat >"$folder/renew.sql" <<SQL
\set number random(1, $users)
SELECT count(*) FROM restoration.renew_1('user' || :number, 'user' || :number, false);
SQL
renewals=$((users / 10 > 0 ? users / 10 : 1))
send() {
  PGOPTIONS="-c search_path=restoration" "$programs/pgbench" --no-vacuum -h "$folder" -U bench \
    --time=$((60 * minutes)) --progress=60 "$@" postgres
}
figures() {
  query -F ' ' -c "
    WITH sizes AS (
      SELECT CASE WHEN relname LIKE 'batch%' THEN 'batch' WHEN relname LIKE 'part%' THEN 'part' ELSE 'rest' END AS name,
        pg_table_size(relid) AS heap, pg_indexes_size(relid) AS indexes, n_dead_tup AS dead, autovacuum_count AS vacuums
      FROM pg_stat_user_tables WHERE schemaname = 'restoration')
    SELECT string_agg(format('%s %s+%s MiB, %s dead, %s vacuums', name, heap, indexes, dead, vacuums), '; ')
      || format('; %s numbers', (SELECT age(datfrozenxid) FROM pg_database WHERE datname = 'postgres'))
    FROM (SELECT name, sum(heap)::bigint >> 20 AS heap, sum(indexes)::bigint >> 20 AS indexes, sum(dead) AS dead,
      sum(vacuums) AS vacuums FROM sizes GROUP BY name ORDER BY name) AS sums"
}

printf '%s users, %s archives, %s appends/s, %s renewals/s\n' "$users" "$((3 * users))" "$rate" "$renewals"
printf 'minute 0: %s\n' "$(figures)"
send --client=2 --jobs=1 --rate="$renewals" --file="$folder/renew.sql" >"$folder/renew.out" 2>&1 &
renewal=$!
# pgbench reports its progress each minute, and the totals at the end.
send --client=8 --jobs=1 --rate="$rate" --file="$folder/append.sql" 2>&1 | while read -r line; do
  case "$line" in
    progress:*) printf '%s; %s\n' "$line" "$(figures)" ;;
    *) printf '%s\n' "$line" ;;
  esac
done
wait "$renewal" || { cat "$folder/renew.out" >&2; exit 1; }
printf 'renewals: %s\n' "$(grep -E '^(latency average|tps)' "$folder/renew.out" | paste -s -d ';')"
