// SPDX-License-Identifier: Apache-2.0

extension PostgresSchema {
  /// Used by the functions below, which have a fixed search path; no role may call them.
  static let helpers = """
    -- Not pg_control_checkpoint(): until the first checkpoint after a promotion it says the former timeline. On a
    -- standby pg_current_wal_lsn() fails, which is right: nothing is asked of a standby. Of a system that has given no
    -- lease it is what it will be when it gives the first one. On two busy cores pg_control_system() takes 8 of the
    -- 22 µs of this; each of 20 appends that share a commit takes 350, one with its own commit 14,000.
    CREATE OR REPLACE FUNCTION timeline() RETURNS bigint LANGUAGE sql STABLE AS $$
      SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint
        + coalesce((SELECT before FROM server WHERE system = (pg_control_system()).system_identifier),
          (SELECT max(highest) FROM server), 0)
    $$;

    -- For the owner, after the server was put back to an earlier state: voids all leases, also those that it no longer
    -- knows. Their timelines were smaller: from now on these count from the minutes since 1970.
    CREATE OR REPLACE FUNCTION void_leases() RETURNS void LANGUAGE sql SET search_path = restoration, pg_temp AS $$
      INSERT INTO server AS s (system, before)
      VALUES ((pg_control_system()).system_identifier, (extract(epoch FROM clock_timestamp()) / 60)::bigint)
      ON CONFLICT (system) DO UPDATE SET before = greatest(s.before + 1, excluded.before)
    $$;

    -- Whether a commit waits for another server, and the gateway is warned if that wait is cancelled; or need not.
    CREATE OR REPLACE FUNCTION is_covered(_alone boolean) RETURNS boolean LANGUAGE sql STABLE AS $$
      SELECT _alone OR current_setting('synchronous_standby_names') <> ''
        AND current_setting('synchronous_commit') IN ('on', 'remote_apply')
        AND current_setting('client_min_messages') <> 'error'
    $$;

    CREATE OR REPLACE FUNCTION milliseconds(_time timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
      SELECT (extract(epoch FROM _time) * 1000)::bigint
    $$;

    CREATE OR REPLACE FUNCTION host_of(_owner text, _archive bigint) RETURNS text LANGUAGE sql STABLE AS $$
      SELECT host FROM archive WHERE archive = _archive AND owner = _owner AND holder IS NOT NULL
    $$;

    -- Where the contents end. A snapshot leaves no batch that ends before it.
    CREATE OR REPLACE FUNCTION tip(_archive bigint, OUT upto bigint, OUT change uuid, OUT epoch bigint)
    LANGUAGE sql STABLE AS $$
      SELECT coalesce(b.upto, a.base), CASE WHEN b.upto IS NULL THEN a.base_change ELSE b.change END,
        coalesce(b.epoch, a.base_epoch)
      FROM archive a LEFT JOIN LATERAL (SELECT upto, change, epoch FROM batch
        WHERE archive = _archive ORDER BY after DESC LIMIT 1) b ON true
      WHERE a.archive = _archive
    $$;

    CREATE OR REPLACE FUNCTION end_reign(_archive bigint, _epoch bigint) RETURNS void LANGUAGE sql AS $$
      INSERT INTO reign SELECT _archive, _epoch, t.upto, t.change FROM tip(_archive) t
      WHERE NOT EXISTS (SELECT FROM (SELECT upto, change FROM reign WHERE archive = _archive AND epoch < _epoch
        ORDER BY epoch DESC LIMIT 1) AS former
        WHERE former.upto = t.upto AND former.change IS NOT DISTINCT FROM t.change)
      ON CONFLICT DO NOTHING
    $$;

    -- What was removed long ago, and brokers that are long gone. What another call is about is left to it.
    CREATE OR REPLACE FUNCTION clean(_owner text) RETURNS void LANGUAGE sql AS $$
      WITH gone AS (
        DELETE FROM archive WHERE archive IN (SELECT archive FROM archive WHERE owner = _owner
          AND removed < clock_timestamp() - interval '90 days' FOR UPDATE SKIP LOCKED) RETURNING archive)
      DELETE FROM reign WHERE archive IN (SELECT archive FROM gone);
      DELETE FROM holder h WHERE h.owner = _owner AND h.renewed < clock_timestamp() - interval '1 day'
        AND NOT EXISTS (SELECT FROM archive a WHERE a.holder = h.holder)
    $$;

    """

  static let leases = """
    -- Which server it is, and how many commits have waited for another one for longer than this: their programs have
    -- given up, and nothing ends them. With the rights of the caller, who sees sessions of the same role.
    CREATE OR REPLACE FUNCTION server_1(_milliseconds bigint, OUT system bigint, OUT timeline bigint, OUT stuck bigint)
    LANGUAGE sql STABLE SET search_path = restoration, pg_temp AS $$
      SELECT (pg_control_system()).system_identifier,
        ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint,
        (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user AND wait_event = 'SyncRep'
          AND query_start < clock_timestamp() - make_interval(secs => _milliseconds / 1000.0))
    $$;

    -- What decides who may have a lease; one row, also if there is no such archive. Then the silence is that since this
    -- server gave the first lease of its timeline.
    CREATE OR REPLACE FUNCTION look_1(_owner text, _application text, _alone boolean,
      OUT covered boolean, OUT timeline bigint, OUT archive bigint, OUT history text, OUT epoch bigint, OUT holder text,
      OUT host text, OUT since bigint, OUT wanted text, OUT reader bigint, OUT renewals bigint, OUT term bigint,
      OUT silence bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
      SELECT is_covered(_alone), timeline(), a.archive, a.history, a.epoch, a.holder, a.host, milliseconds(a.since),
        a.wanted, a.reader, h.renewals, h.term,
        (extract(epoch FROM clock_timestamp() - CASE WHEN a.epoch > 0 THEN h.renewed ELSE (SELECT s.since FROM server s
          WHERE s.system = (pg_control_system()).system_identifier AND s.highest = timeline()) END) * 1000)::bigint
      FROM (SELECT) AS one
      LEFT JOIN archive a ON a.owner = _owner AND a.application = _application
      LEFT JOIN holder h ON h.holder = a.holder
    $$;

    -- Gives a lease, if what was seen when that was decided still holds.
    CREATE OR REPLACE FUNCTION take_1(_owner text, _application text, _holder text, _host text, _term bigint,
      _history text, _reader bigint, _standing bigint, _seen bigint, _seen_holder text, _seen_renewals bigint,
      _alone boolean,
      OUT outcome text, OUT archive bigint, OUT lease bigint, OUT history text, OUT base bigint, OUT tip bigint,
      OUT tip_change uuid, OUT tip_epoch bigint, OUT reign bigint, OUT reign_change uuid, OUT flushed boolean,
      OUT former text, OUT former_since bigint, OUT reader bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
    #variable_conflict use_column
    DECLARE
      _row archive;
      _system bigint := (pg_control_system()).system_identifier;
      _timeline bigint;
      _highest bigint;
    BEGIN
      IF NOT is_covered(_alone) THEN outcome := 'uncovered'; RETURN; END IF;
      IF _seen = 0 THEN
        -- As many as a user may have; those that were removed count.
        INSERT INTO archive (owner, application, history)
        SELECT _owner, _application, coalesce(_history, gen_random_uuid()::text)
        WHERE (SELECT count(*) FROM archive WHERE owner = _owner) < 1000 ON CONFLICT DO NOTHING;
      END IF;
      -- Waits for an append under the former lease.
      SELECT * INTO _row FROM archive WHERE owner = _owner AND application = _application FOR NO KEY UPDATE;
      IF _row.archive IS NULL AND _seen = 0 THEN outcome := 'quota'; RETURN; END IF;
      IF _row.archive IS NULL OR _row.epoch <> _seen OR _row.holder IS DISTINCT FROM _seen_holder THEN
        outcome := 'changed'; RETURN;
      END IF;
      IF _seen_renewals IS NOT NULL THEN
        PERFORM FROM holder WHERE holder = _row.holder AND renewals = _seen_renewals FOR SHARE;
        IF NOT FOUND THEN outcome := 'changed'; RETURN; END IF;
      END IF;
      reader := _row.reader;
      IF _row.reader > _reader THEN outcome := 'tooNew'; RETURN; END IF;
      -- Epochs grow, wherever the contents have come from.
      SELECT max(highest) INTO _highest FROM server WHERE system <> _system;
      IF NOT EXISTS (SELECT FROM server WHERE system = _system) OR _highest >= timeline()
        OR _row.epoch >> 32 > timeline()
      THEN
        INSERT INTO server AS s VALUES (_system, greatest(_highest, _row.epoch >> 32))
        ON CONFLICT (system) DO UPDATE SET before = greatest(s.before, excluded.before);
      END IF;
      _timeline := timeline();
      UPDATE server SET highest = _timeline, since = clock_timestamp() WHERE system = _system AND highest < _timeline;
      INSERT INTO holder AS h (holder, owner, host, term, system, timeline)
      VALUES (_holder, _owner, _host, _term, _system, _timeline)
      ON CONFLICT (holder) DO UPDATE SET host = excluded.host, term = excluded.term, system = excluded.system,
        timeline = excluded.timeline, renewals = h.renewals + 1, renewed = clock_timestamp()
      WHERE h.owner = excluded.owner;
      IF NOT FOUND THEN RAISE EXCEPTION 'holder % is of another owner', _holder; END IF;
      archive := _row.archive; base := _row.base; flushed := _row.flushed;
      SELECT t.upto, t.change, t.epoch INTO tip, tip_change, tip_epoch FROM tip(_row.archive) t;
      -- Of an archive that was removed it was ended with what there was before.
      IF _row.epoch > 0 AND _row.removed IS NULL THEN PERFORM end_reign(_row.archive, _row.epoch); END IF;
      SELECT r.upto, r.change INTO reign, reign_change FROM reign r
      WHERE r.archive = _row.archive AND r.epoch <= _standing ORDER BY r.epoch DESC LIMIT 1;
      DELETE FROM part WHERE archive = _row.archive AND attempt IS DISTINCT FROM _row.base_attempt;
      IF _row.holder IS NOT NULL THEN former := _row.host; former_since := milliseconds(_row.since); END IF;
      -- A row that is new may be that of contents which the claimant has known under later leases.
      UPDATE archive a SET epoch = (_timeline << 32) + 1 + CASE _row.epoch
          WHEN 0 THEN least(coalesce(_standing, 0) & 4294967295, 2147483648) ELSE _row.epoch & 4294967295 END,
        holder = _holder, host = _host, since = clock_timestamp(), flushed = false, wanted = NULL, removed = NULL,
        history = CASE WHEN _row.removed IS NULL THEN _row.history ELSE gen_random_uuid()::text END
      WHERE a.archive = _row.archive RETURNING a.epoch, a.history INTO lease, history;
      outcome := 'taken';
      PERFORM clean(_owner);
    END $$;

    -- Another host waits for the archive. The first one is told.
    CREATE OR REPLACE FUNCTION want_1(_owner text, _archive bigint, _epoch bigint, _host text, OUT told boolean)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
    BEGIN
      UPDATE archive SET wanted = _host WHERE archive = _archive AND owner = _owner AND epoch = _epoch
        AND holder IS NOT NULL AND wanted IS NULL;
      told := FOUND;
    END $$;

    -- A broker is alive. The first row says the outcome, the others are its leases.
    CREATE OR REPLACE FUNCTION renew_1(_owner text, _holder text, _alone boolean)
    RETURNS TABLE (outcome text, archive bigint, application text, epoch bigint, wanted text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
    #variable_conflict use_column
    DECLARE _timeline bigint := timeline();
    BEGIN
      IF NOT is_covered(_alone) THEN outcome := 'uncovered'; RETURN NEXT; RETURN; END IF;
      UPDATE holder SET renewals = renewals + 1, renewed = clock_timestamp()
      WHERE holder = _holder AND owner = _owner AND timeline = _timeline
        AND system = (pg_control_system()).system_identifier;
      IF NOT FOUND THEN outcome := 'voided'; RETURN NEXT; RETURN; END IF;
      outcome := 'renewed'; RETURN NEXT;
      RETURN QUERY SELECT NULL, a.archive, a.application, a.epoch, a.wanted FROM archive a
        WHERE a.holder = _holder AND a.owner = _owner AND a.epoch >> 32 = _timeline;
    END $$;

    -- For which archives of these brokers somebody waits; names of brokers, separated by commas. The row without a
    -- broker has the timeline in place of an archive.
    CREATE OR REPLACE FUNCTION wanted_1(_holders text) RETURNS TABLE (holder text, archive bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
      SELECT NULL, timeline() UNION ALL
      SELECT holder, archive FROM archive WHERE holder = ANY (string_to_array(_holders, ',')) AND wanted IS NOT NULL
    $$;

    -- Gives a lease back, or removes the archive.
    CREATE OR REPLACE FUNCTION release_1(_owner text, _archive bigint, _epoch bigint, _removed boolean,
      _flushed boolean, _summary bytea, OUT outcome text, OUT host text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
    #variable_conflict use_column
    BEGIN
      PERFORM FROM archive WHERE archive = _archive AND owner = _owner AND epoch = _epoch AND removed IS NULL
        FOR NO KEY UPDATE;
      IF timeline() <> _epoch >> 32 THEN outcome := 'voided'; RETURN; END IF;
      IF NOT FOUND THEN outcome := 'fenced'; host := host_of(_owner, _archive); RETURN; END IF;
      outcome := 'released';
      IF NOT _removed THEN
        UPDATE archive SET holder = NULL, wanted = NULL, flushed = _flushed,
          summary = CASE WHEN _summary = '' THEN summary ELSE _summary END
        WHERE archive = _archive;
        RETURN;
      END IF;
      PERFORM end_reign(_archive, _epoch);
      UPDATE archive SET holder = NULL, wanted = NULL, flushed = true, summary = '', removed = clock_timestamp(),
        base = 0, base_change = NULL, base_epoch = 0, base_attempt = NULL, parts = 0, reader = 1
      WHERE archive = _archive;
      DELETE FROM batch WHERE archive = _archive;
      DELETE FROM part WHERE archive = _archive;
    END $$;

    -- Archives behind an application, as many as have room.
    CREATE OR REPLACE FUNCTION list_1(_owner text, _after text, _count bigint)
    RETURNS TABLE (application text, host text, since bigint, flushed boolean, sequence bigint, summary bytea)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
      SELECT a.application, CASE WHEN a.holder IS NOT NULL THEN a.host END, milliseconds(a.since), a.flushed, t.upto,
        a.summary
      FROM archive a CROSS JOIN LATERAL tip(a.archive) t
      WHERE a.owner = _owner AND a.removed IS NULL AND a.epoch > 0
        AND (_after IS NULL OR a.application COLLATE "C" > _after)
      ORDER BY a.application COLLATE "C" LIMIT _count
    $$;

    -- Everything of a user goes; the number of archives.
    CREATE OR REPLACE FUNCTION erase_1(_owner text, OUT archives bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = restoration, pg_temp AS $$
    DECLARE _archives bigint[];
    BEGIN
      -- Waits for appends; later ones find no lease.
      SELECT coalesce(array_agg(archive), '{}') INTO _archives
      FROM (SELECT archive FROM archive WHERE owner = _owner ORDER BY archive FOR UPDATE) AS locked;
      DELETE FROM batch WHERE archive = ANY (_archives);
      DELETE FROM part WHERE archive = ANY (_archives);
      DELETE FROM reign WHERE archive = ANY (_archives);
      DELETE FROM archive WHERE archive = ANY (_archives);
      DELETE FROM holder WHERE owner = _owner;
      archives := cardinality(_archives);
    END $$;

    """
}
