-- The definitions of `verification.vocabulary.anomalies`, as DuckDB finds them fastest. Variables: `evidence` (the
-- directory of one scenario without live observers) and `run`. The result is the table `found`, in the columns of
-- `findings.FoundViolation`.
--
-- Fingerprints first. Records of the log are aggregated to one row per partition and operation: their number, the first
-- and last offset, the epochs, and two sums of a hash over offset and content, one of them XOR. These rows are a tenth
-- of the records. They decide outcomes, epochs and missing control records, and whether producers' own numbers follow
-- each other. They are compared with the same fingerprints of deliveries, and with the answers to clients. Only
-- operations that disagree are checked record by record. Two questions have no fingerprint: the order within a
-- partition needs a window over all records, and copies are compared with their inputs by blocks of 256 offsets.
-- `surroundings.sql` finds the records around the examples, from tables that are made here.
--
-- A hash of several values is chained, because in a hash that is merely combined, a swap of two values cancels out.

CREATE TEMP MACRO content(place, whole, part) AS
    hash(xor(hash(place), xor(whole::UBIGINT << 32, part::UBIGINT)));

-- Small evidence: the history, and the cluster's state at quiescence --------------------------------------------------

CREATE TEMP TABLE topics AS
    SELECT unnest(range(len(topics)))::INT AS topic_index, unnest(topics).name AS topic, unnest(topics).role AS role
    FROM read_json(getvariable('evidence') || '/scenario.json');

CREATE TEMP TABLE settings AS
    SELECT fan_out, "group" AS its_group FROM read_json(getvariable('evidence') || '/scenario.json');

CREATE TEMP TABLE captures AS
    SELECT * FROM read_json(getvariable('evidence') || '/captures.json', maximum_object_size = 100000000);

CREATE TEMP TABLE ends AS
    SELECT topic_index, e.partition, e.high_watermark, e.last_stable_offset
    FROM (SELECT unnest(ends) AS e FROM captures) JOIN topics ON topic = e.topic;

CREATE TEMP TABLE opened AS
    SELECT topic_index, p.partition, p.producer_id, p.first_offset AS "offset"
    FROM (SELECT unnest(open_producers) AS p FROM captures) JOIN topics ON topic = p.topic;

CREATE TEMP TABLE running AS
    SELECT s.producer_id FROM (SELECT unnest(coordinator_states) AS s FROM captures)
    WHERE s.state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort');

CREATE TEMP TABLE group_offsets AS
    SELECT topic_index, g.partition, greatest(g.offset, 0) AS committed_offset
    FROM (SELECT unnest(group_offsets) AS g FROM captures) JOIN topics ON topic = g.topic, settings
    WHERE g."group" = its_group;

CREATE TEMP TABLE operations AS
WITH entries AS (
    SELECT * FROM read_json(getvariable('evidence') || '/history.jsonl', format = 'newline_delimited', columns = {
        type: 'VARCHAR', process: 'INT', operation: 'BIGINT', action: 'VARCHAR', outcome: 'VARCHAR', intent: 'VARCHAR',
        transactional_id: 'VARCHAR', records: 'INT', decided_ns: 'BIGINT', completed_ns: 'BIGINT'})
    WHERE type = 'operation'
), owned AS (
    SELECT *, action = 'init' AND outcome = 'ok' AS takes,
        last_value(CASE WHEN action = 'init' AND outcome = 'ok' THEN process END IGNORE NULLS) OVER before AS owner,
        last_value(CASE WHEN action = 'init' AND outcome = 'ok' THEN completed_ns END IGNORE NULLS) OVER before AS since_ns
    FROM entries
    WINDOW before AS (PARTITION BY transactional_id
        ORDER BY CASE WHEN action = 'init' THEN completed_ns ELSE decided_ns END, action = 'init'
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT process, operation, coalesce(records, 0) AS size,
    CASE WHEN action = 'transaction' OR (action = 'copy' AND transactional_id IS NOT NULL) THEN
        CASE WHEN intent IS DISTINCT FROM 'commit' OR outcome = 'fail' OR decided_ns IS NULL THEN 'aborted'
             WHEN outcome = 'ok' THEN 'committed' ELSE 'unknown' END
    END AS told,
    action = 'append' OR (action = 'copy' AND transactional_id IS NULL) AS plain,
    transactional_id IS NOT NULL AND decided_ns IS NOT NULL AND owner <> process AS superseded
FROM owned;

-- Fingerprints of the log ---------------------------------------------------------------------------------------------

CREATE TEMP VIEW log AS
    SELECT *, coalesce(valid AND identity_run = getvariable('run'), false) AS genuine
    FROM read_parquet(getvariable('evidence') || '/log/*.parquet');
CREATE TEMP VIEW uncommitted AS
    SELECT *, coalesce(valid AND identity_run = getvariable('run'), false) AS genuine
    FROM read_parquet(getvariable('evidence') || '/uncommitted/*.parquet');
CREATE TEMP VIEW committed AS
    SELECT *, coalesce(valid AND identity_run = getvariable('run'), false) AS genuine
    FROM read_parquet(getvariable('evidence') || '/committed/*.parquet');

-- Rows that are read again are close together, where something is wrong. `reading` is the query for all rows of a
-- capture in some stretches (a table with topic_index, partition, lowest and highest), and for those between
-- neighbouring stretches. Each file is asked for its own offsets, by constants. Then DuckDB knows before it reads them
-- that the file, or most of its row groups, cannot hold them. A vector has 2048 rows.
CREATE TEMP MACRO footers_of(named) AS TABLE
    SELECT named AS capture, file_name, min(stats_min_value::BIGINT) FILTER (path_in_schema = 'topic_index') AS topic_min,
        max(stats_max_value::BIGINT) FILTER (path_in_schema = 'topic_index') AS topic_max,
        min(stats_min_value::BIGINT) FILTER (path_in_schema = 'partition') AS partition_min,
        max(stats_max_value::BIGINT) FILTER (path_in_schema = 'partition') AS partition_max
    FROM parquet_metadata(getvariable('evidence') || '/' || named || '/*.parquet')
    WHERE path_in_schema IN ('topic_index', 'partition') GROUP BY file_name;

CREATE TEMP TABLE footers AS
    FROM footers_of('log') UNION ALL FROM footers_of('committed') UNION ALL FROM footers_of('uncommitted');

CREATE TEMP MACRO together(stretches) AS TABLE
WITH apart AS (
    SELECT topic_index, partition, lowest, highest,
        coalesce(lowest - max(highest) OVER earlier > 2048, true) AS begins FROM query_table(stretches)
    WINDOW earlier AS (PARTITION BY topic_index, partition ORDER BY lowest ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), numbered AS (
    SELECT *, count(*) FILTER (begins) OVER (PARTITION BY topic_index, partition ORDER BY lowest) AS number FROM apart
)
SELECT topic_index, partition, min(lowest) AS lowest, max(highest) AS highest FROM numbered
GROUP BY topic_index, partition, number;

CREATE TEMP MACRO rows_of(files) AS 'SELECT *, coalesce(valid AND identity_run = getvariable(''run''), false) AS genuine'
    || ' FROM read_parquet(''' || replace(files, '''', '''''') || ''')';

CREATE TEMP MACRO reading(named, stretches) AS coalesce((
    SELECT string_agg(rows_of(file_name) || ' WHERE ' || there, ' UNION ALL ')
    FROM (SELECT file_name, string_agg(DISTINCT format('"offset" BETWEEN {} AND {}', lowest, highest), ' OR ') AS there
        FROM footers JOIN together(stretches) ON capture = named AND coalesce(
            topic_index BETWEEN topic_min AND topic_max AND partition BETWEEN partition_min AND partition_max, true)
        GROUP BY file_name)
), rows_of(getvariable('evidence') || '/' || named || '/*.parquet') || ' LIMIT 0');

CREATE TEMP TABLE runs AS
    SELECT topic_index, partition, producer_id, CASE WHEN genuine THEN process END AS process,
        CASE WHEN genuine THEN operation END AS operation, transactional,
        count(*) AS n, min("offset") AS first, max("offset") AS last,
        min(producer_epoch) AS epoch_min, max(producer_epoch) AS epoch_max,
        bit_xor(content("offset", digest, identity_digest)) AS x,
        sum(content("offset", digest, identity_digest) & 4294967295)::BIGINT AS s,
        sum(hash("index") & 4294967295)::BIGINT AS indexes, max("index") AS index_max, max("count") AS carried,
        bool_or(topic_index <> intended_topic_index OR partition <> intended_partition) AS misrouted,
        min(sequence) AS number_min, max(sequence) AS number_max,
        coalesce(min(sequence - send_order) <> max(sequence - send_order), true) AS out_of_step
    FROM log WHERE control IS NULL GROUP BY ALL;

CREATE TEMP TABLE markers AS
    SELECT topic_index, partition, producer_id, "offset", producer_epoch,
        CASE WHEN control IN ('commit', 'abort') THEN control END AS decision
    FROM log WHERE control IS NOT NULL;

-- Runs and control records of a producer in a partition, in order: the decision, the next one, and the one before.
CREATE TEMP TABLE steps AS
WITH every AS (
    SELECT topic_index, partition, producer_id, process, operation, transactional, first, last, epoch_min, epoch_max,
        NULL AS decision, false AS marker, number_min, number_max,
        misrouted OR out_of_step OR number_max - number_min <> n - 1 AS loose FROM runs
    UNION ALL
    SELECT topic_index, partition, producer_id, NULL, NULL, true, "offset", "offset", producer_epoch, producer_epoch,
        decision, true, NULL, NULL, NULL FROM markers
)
SELECT * EXCLUDE (number_max),
    lag(CASE WHEN number_max >= 0 THEN epoch_max::BIGINT << 32 | number_max END IGNORE NULLS) OVER turns AS numbered_before,
    lag(CASE WHEN NOT marker THEN first END IGNORE NULLS) OVER turns AS run_before,
    lead(decision IGNORE NULLS) OVER turns AS outcome,
    lead(marker) OVER turns AS next_marker, lead(process) OVER turns AS next_process,
    lead(operation) OVER turns AS next_operation,
    coalesce(max(last) OVER earlier > first, false) AS crosses,
    epoch_min < epoch_max OR coalesce(max(epoch_max) OVER earlier > epoch_min, false) AS stale
FROM every
WINDOW turns AS (PARTITION BY topic_index, partition, producer_id ORDER BY first),
    earlier AS (PARTITION BY topic_index, partition, producer_id ORDER BY first
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING);

-- Where runs overlap or epochs go back, the aggregate says too little: there every record is checked.
CREATE TEMP TABLE odd AS
    SELECT DISTINCT topic_index, partition, producer_id FROM steps WHERE producer_id >= 0 AND (crosses OR stale);

CREATE TEMP TABLE odd_records AS
WITH rows AS (
    SELECT log.topic_index, log.partition, log.producer_id, log."offset", control, transactional, producer_epoch, genuine,
        CASE WHEN genuine THEN process END AS process, CASE WHEN genuine THEN operation END AS operation, "index",
        "count", intended_topic_index, intended_partition, digest, identity_digest, sequence
    FROM log JOIN odd USING (topic_index, partition, producer_id)
)
SELECT *,
    CASE WHEN NOT transactional THEN 'commit' ELSE coalesce(lead(
        CASE WHEN control IN ('commit', 'abort') THEN control END IGNORE NULLS) OVER turns, 'open') END AS outcome,
    max(producer_epoch) OVER earlier AS epoch_before,
    lag(sequence) OVER (PARTITION BY topic_index, partition, producer_id, producer_epoch, control IS NULL
        ORDER BY "offset") AS number_before,
    lead(control) OVER turns AS next_control, lead(process) OVER turns AS next_process,
    lead(operation) OVER turns AS next_operation
FROM rows
WINDOW turns AS (PARTITION BY topic_index, partition, producer_id ORDER BY "offset"),
    earlier AS (PARTITION BY topic_index, partition, producer_id ORDER BY "offset"
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING);

-- One row per partition, operation and outcome.
CREATE TEMP TABLE pieces AS
    SELECT runs.* EXCLUDE (number_min, number_max, out_of_step),
        CASE WHEN NOT runs.transactional THEN 'commit' ELSE coalesce(outcome, 'open') END AS outcome
    FROM runs JOIN steps ON NOT marker AND runs.topic_index = steps.topic_index AND runs.partition = steps.partition
        AND runs.producer_id = steps.producer_id AND runs.first = steps.first
    WHERE NOT EXISTS (FROM odd WHERE odd.topic_index = runs.topic_index AND odd.partition = runs.partition
        AND odd.producer_id = runs.producer_id)
    UNION ALL
    SELECT topic_index, partition, producer_id, process, operation, transactional, count(*), min("offset"), max("offset"),
        min(producer_epoch), max(producer_epoch), bit_xor(content("offset", digest, identity_digest)),
        sum(content("offset", digest, identity_digest) & 4294967295)::BIGINT,
        sum(hash("index") & 4294967295)::BIGINT, max("index"), max("count"),
        bool_or(topic_index <> intended_topic_index OR partition <> intended_partition), outcome
    FROM odd_records WHERE control IS NULL
    GROUP BY topic_index, partition, producer_id, process, operation, transactional, outcome;

-- Fingerprints against fingerprints -----------------------------------------------------------------------------------

-- Deliveries to committed readers, compared with the committed pieces.
CREATE TEMP TABLE delivered_otherwise AS
WITH every AS (
    SELECT topic_index, partition, process, operation, n, x, s FROM pieces WHERE outcome = 'commit'
    UNION ALL
    SELECT topic_index, partition, CASE WHEN genuine THEN process END AS process,
        CASE WHEN genuine THEN operation END AS operation, -count(*),
        bit_xor(content("offset", digest, identity_digest)),
        -sum(content("offset", digest, identity_digest) & 4294967295)::BIGINT
    FROM committed GROUP BY 1, 2, 3, 4
)
SELECT process, operation, topic_index, partition FROM every GROUP BY ALL
HAVING sum(n) <> 0 OR bit_xor(x) <> 0 OR sum(s) <> 0;

-- Deliveries to uncommitted readers, compared with all of the log, by blocks of offsets.
CREATE TEMP TABLE given_otherwise AS
WITH every AS (
    SELECT topic_index, partition, "offset" >> 8 AS block, count(*) AS n,
        bit_xor(content("offset", digest, identity_digest)) AS x,
        sum(content("offset", digest, identity_digest) & 4294967295)::BIGINT AS s
    FROM log WHERE control IS NULL GROUP BY ALL
    UNION ALL
    SELECT topic_index, partition, "offset" >> 8 AS block, -count(*),
        bit_xor(content("offset", digest, identity_digest)),
        -sum(content("offset", digest, identity_digest) & 4294967295)::BIGINT
    FROM uncommitted GROUP BY topic_index, partition, block
)
SELECT topic_index, partition, block << 8 AS lowest, (block << 8) + 255 AS highest FROM every
GROUP BY topic_index, partition, block
HAVING sum(n) <> 0 OR bit_xor(x) <> 0 OR sum(s) <> 0;

-- The log's records of an operation, compared with the answer to its client.
CREATE TEMP MACRO ack_file(process) AS getvariable('evidence') || '/acks/' || process || '.jsonl.gz';
SET VARIABLE plain_acks = (
    SELECT coalesce(list(DISTINCT ack_file(process)), [ack_file('*')]) FROM operations WHERE plain AND size > 0);

CREATE TEMP TABLE acked AS
    SELECT regexp_extract(filename, '(\d+)\.jsonl\.gz$', 1)::INT AS process, operation,
        unnest(acks) AS ack
    FROM read_json(getvariable('plain_acks'),
        format = 'newline_delimited', columns = {operation: 'BIGINT', acks: 'VARCHAR[][]'}, filename = true);

CREATE TEMP TABLE index_sums AS
    SELECT size, sum(hash(size::INT - 1) & 4294967295) OVER (ORDER BY size)::BIGINT AS indexes
    FROM range(1, (SELECT coalesce(max(size), 0) + 2 FROM operations)) AS sizes(size);

CREATE TEMP TABLE suspects AS
WITH held AS (
    SELECT process, operation, coalesce(sum(n) FILTER (outcome = 'commit'), 0) AS n,
        sum(indexes) FILTER (outcome = 'commit') AS indexes, max(index_max) AS index_max, max(carried) AS carried,
        bool_or(misrouted) AS misrouted
    FROM pieces WHERE process IS NOT NULL GROUP BY ALL
), promised AS (
    SELECT process, operation, count(*) AS n, sum(hash(ack[1]::INT) & 4294967295)::BIGINT AS indexes
    FROM acked WHERE ack[5] = 'ok' GROUP BY ALL
)
SELECT process, operation
FROM operations FULL JOIN held USING (process, operation) LEFT JOIN promised USING (process, operation)
    LEFT JOIN index_sums ON index_sums.size = operations.size
WHERE misrouted OR plain IS NULL OR index_max >= (CASE WHEN operations.size > 0 THEN operations.size ELSE carried END)
    OR (told = 'committed' AND operations.size > 0
        AND (coalesce(held.n, 0) <> operations.size OR held.indexes <> index_sums.indexes))
    OR (told = 'unknown' AND held.n > 0 AND (held.n <> operations.size OR held.indexes <> index_sums.indexes))
    OR (told = 'aborted' AND held.n > 0)
    OR (plain AND (coalesce(held.n, 0) <> coalesce(promised.n, 0) OR held.indexes <> promised.indexes))
UNION
SELECT process, operation FROM delivered_otherwise WHERE process IS NOT NULL;

-- Order and copies ----------------------------------------------------------------------------------------------------

CREATE TEMP TABLE out_of_order AS
    SELECT topic_index, partition, process, "offset" FROM (
        SELECT topic_index, partition, process, "offset",
            send_order < lag(send_order) OVER (PARTITION BY topic_index, partition, process ORDER BY "offset") AS back
        FROM log WHERE genuine AND topic_index = intended_topic_index AND partition = intended_partition
    ) WHERE back;

CREATE TEMP TABLE reordered AS
WITH held AS (
    SELECT topic_index, partition, "offset", transactional, producer_id, process, operation, "index", send_order
    FROM log SEMI JOIN out_of_order USING (topic_index, partition, process)
    WHERE genuine AND topic_index = intended_topic_index AND partition = intended_partition
), kept AS (
    SELECT held.* FROM held ASOF LEFT JOIN (FROM markers WHERE decision IS NOT NULL) AS m
        ON held.topic_index = m.topic_index AND held.partition = m.partition AND held.producer_id = m.producer_id
        AND held."offset" < m."offset"
    WHERE NOT transactional OR decision = 'commit'
)
SELECT process, operation, "index", topic_index, partition, "offset" FROM kept
QUALIFY send_order < max(send_order) OVER (PARTITION BY topic_index, partition, process ORDER BY "offset"
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    AND row_number() OVER (PARTITION BY topic_index, partition, process, send_order ORDER BY "offset") = 1;

-- Producers' numbers, by the rule of `verification.checks.numbering`. In a run they count up by one per record if they
-- are as many as they span, keep step with send orders, and these rise. Otherwise the run is loose. A run is read if it
-- is loose, if it comes after a loose one, or if it does not begin where the one before it ends. An odd producer has
-- been read already. Some cases cannot occur in this evidence and are not checked: a log that begins later than at
-- offset 0, before which numbers may have been deleted; a history of a day or more, in which brokers forget producers;
-- a producer that numbers only some of its records; a control record that is neither commit nor abort.
CREATE TEMP TABLE loose AS
    SELECT topic_index, partition, producer_id, first, last FROM steps
    WHERE loose AND producer_id >= 0 AND number_min >= 0
    UNION
    SELECT topic_index, partition, producer_id, first, last
    FROM steps JOIN out_of_order USING (topic_index, partition, process)
    WHERE "offset" BETWEEN first AND last AND producer_id >= 0 AND number_min >= 0;

CREATE TEMP TABLE unjoined AS
WITH doubted AS (
    SELECT topic_index, partition, producer_id, first FROM loose
    UNION
    SELECT topic_index, partition, producer_id, steps.first FROM steps JOIN loose USING (topic_index, partition, producer_id)
    WHERE run_before = loose.first AND NOT marker
    UNION
    SELECT topic_index, partition, producer_id, first FROM steps
    WHERE producer_id >= 0 AND number_min <> (CASE WHEN numbered_before >> 32 = epoch_min
        THEN (numbered_before + 1) & 2147483647 ELSE 0 END)
)
SELECT topic_index, partition, producer_id, process, operation, first AS lowest, last AS highest, numbered_before,
    run_before IN (SELECT d.first FROM doubted AS d WHERE d.topic_index = steps.topic_index
        AND d.partition = steps.partition AND d.producer_id = steps.producer_id) AS follows
FROM steps SEMI JOIN doubted USING (topic_index, partition, producer_id, first)
    ANTI JOIN odd USING (topic_index, partition, producer_id);

CREATE TEMP TABLE copied AS
    SELECT log.topic_index, log.partition, "offset", log.process, log.operation, "index", source_partition, source_offset,
        intended_topic_index AS output, outcome
    FROM log JOIN pieces ON log.topic_index = pieces.topic_index AND log.partition = pieces.partition
        AND log.producer_id = pieces.producer_id AND log.process = pieces.process AND log.operation = pieces.operation
        AND "offset" BETWEEN pieces.first AND pieces.last
    WHERE genuine AND source_offset <> -1 AND EXISTS (FROM settings WHERE fan_out IS NOT NULL)
        AND NOT EXISTS (FROM odd WHERE odd.topic_index = log.topic_index AND odd.partition = log.partition
            AND odd.producer_id = log.producer_id)
    UNION ALL
    SELECT topic_index, partition, "offset", log.process, log.operation, log."index", source_partition, source_offset,
        log.intended_topic_index, outcome
    FROM log JOIN odd_records USING (topic_index, partition, "offset")
    WHERE log.genuine AND source_offset <> -1 AND EXISTS (FROM settings WHERE fan_out IS NOT NULL);

CREATE TEMP VIEW copies AS SELECT * EXCLUDE (outcome) FROM copied WHERE outcome = 'commit';

CREATE TEMP TABLE inputs AS
    SELECT partition AS source_partition, "offset" AS source_offset, committed_offset
    FROM committed JOIN group_offsets USING (topic_index, partition) WHERE "offset" < committed_offset;

-- Blocks of inputs in which some input was not copied exactly once per output.
CREATE TEMP TABLE copied_otherwise AS
WITH outputs AS (
    SELECT source_partition, source_offset >> 8 AS block, output, count(*) AS n, bit_xor(hash(source_offset)) AS x,
        sum(hash(source_offset) & 4294967295)::BIGINT AS s
    FROM copies JOIN group_offsets ON group_offsets.partition = source_partition AND source_offset < committed_offset
    GROUP BY ALL
), wanted AS (
    SELECT source_partition, source_offset >> 8 AS block, count(*) AS n, bit_xor(hash(source_offset)) AS x,
        sum(hash(source_offset) & 4294967295)::BIGINT AS s
    FROM inputs GROUP BY ALL
)
SELECT source_partition, block FROM wanted FULL JOIN outputs USING (source_partition, block)
GROUP BY source_partition, block
HAVING bool_or(wanted.n IS DISTINCT FROM outputs.n OR wanted.x <> outputs.x OR wanted.s <> outputs.s)
    OR count(DISTINCT output) <> (SELECT fan_out FROM settings);

CREATE TEMP TABLE uncopied AS
    SELECT source_partition, source_offset FROM (
        SELECT source_partition, source_offset, NULL AS output FROM inputs SEMI JOIN copied_otherwise
            ON inputs.source_partition = copied_otherwise.source_partition AND source_offset >> 8 = block
        UNION ALL
        SELECT source_partition, source_offset, output FROM copies SEMI JOIN copied_otherwise
            ON copies.source_partition = copied_otherwise.source_partition AND source_offset >> 8 = block
    ) GROUP BY ALL
    HAVING count(*) > count(output) AND count(DISTINCT output) < (SELECT fan_out FROM settings);

CREATE TEMP TABLE hung AS
WITH open AS (
    SELECT topic_index, partition, producer_id, first AS "offset" FROM pieces WHERE outcome = 'open'
    UNION ALL
    SELECT topic_index, partition, producer_id, "offset" FROM opened
)
SELECT topic_index, partition, producer_id, min("offset") AS "offset" FROM open
WHERE producer_id NOT IN (FROM running) GROUP BY ALL;

CREATE TEMP TABLE zombies AS
WITH late AS (
    SELECT process, operation, topic_index, partition, first AS "offset"
    FROM pieces JOIN operations USING (process, operation)
    WHERE superseded AND outcome = 'commit'
    UNION ALL
    SELECT process, operation, topic_index, partition, "offset" FROM odd_records
    WHERE genuine AND control IS NULL AND outcome = 'commit' AND producer_epoch < epoch_before
)
SELECT process, operation, min(row(topic_index, partition, "offset")) AS place FROM late GROUP BY ALL;

CREATE TEMP TABLE adopted AS
WITH ends_of AS (
    SELECT topic_index, partition, last AS "offset", process, operation, next_process, next_operation, outcome
    FROM steps
    WHERE NOT marker AND transactional AND outcome IS NOT NULL AND next_marker = false
        AND (process <> next_process OR operation <> next_operation)
        AND NOT EXISTS (FROM odd WHERE odd.topic_index = steps.topic_index AND odd.partition = steps.partition
            AND odd.producer_id = steps.producer_id)
    UNION ALL
    SELECT topic_index, partition, "offset", process, operation, next_process, next_operation, outcome FROM odd_records
    WHERE genuine AND transactional AND control IS NULL AND next_control IS NULL AND outcome <> 'open'
        AND (process <> next_process OR operation <> next_operation)
)
SELECT topic_index, partition, "offset", ends_of.process, ends_of.operation FROM ends_of
SEMI JOIN operations AS own ON own.process = ends_of.process AND own.operation = ends_of.operation
SEMI JOIN operations AS next ON next.process = next_process AND next.operation = next_operation;

-- Drill-down: suspects and their neighbours are read once -------------------------------------------------------------

CREATE TEMP TABLE foreigners AS
    SELECT topic_index, partition, "offset" FROM log
    SEMI JOIN (FROM runs WHERE process IS NULL) AS nobodys USING (topic_index, partition, producer_id)
    WHERE control IS NULL AND NOT genuine;

SET VARIABLE suspect_acks = (
    SELECT coalesce(list(DISTINCT ack_file(process)), [ack_file('*')])
    FROM suspects SEMI JOIN operations USING (process, operation));

CREATE TEMP TABLE answered AS
WITH doubted AS (
    -- The acknowledgements of all other operations are not parsed.
    SELECT process, operation, unnest(acks::VARCHAR[][]) AS ack FROM (
        SELECT regexp_extract(filename, '(\d+)\.jsonl\.gz$', 1)::INT AS process, operation, acks
        FROM read_json(getvariable('suspect_acks'), format = 'newline_delimited',
            columns = {operation: 'BIGINT', acks: 'JSON'}, filename = true)
    ) SEMI JOIN suspects USING (process, operation)
)
SELECT process, operation, ack[1]::INT AS "index", ack[2]::INT AS topic_index, ack[3]::INT AS partition,
    ack[4]::BIGINT AS "offset"
FROM doubted WHERE ack[5] = 'ok';

-- The places where committed readers received suspects.
CREATE TEMP TABLE delivered AS
    SELECT topic_index, partition, "offset" FROM committed JOIN suspects USING (process, operation) WHERE genuine
    UNION
    SELECT topic_index, partition, "offset" FROM committed
    SEMI JOIN (FROM delivered_otherwise WHERE process IS NULL) AS strange USING (topic_index, partition) WHERE NOT genuine;

-- All queries from here on are about these stretches: records of suspect operations, the places of findings, their
-- neighbours, and the operations that write there at the same time.
CREATE TEMP TABLE drilled AS
WITH alone AS (
    FROM foreigners UNION FROM delivered UNION SELECT topic_index, partition, "offset" FROM hung
    UNION SELECT topic_index, partition, "offset" FROM answered
    UNION SELECT topic_index, source_partition, source_offset
        FROM uncopied JOIN group_offsets ON partition = source_partition
), narrow AS (
    SELECT topic_index, partition, source_offset AS lowest, source_offset AS highest
    FROM uncopied JOIN group_offsets ON partition = source_partition
    UNION ALL SELECT topic_index, partition, "offset", "offset" FROM hung
    UNION ALL FROM given_otherwise
), named AS (
    FROM suspects UNION SELECT process, operation FROM zombies UNION SELECT process, operation FROM adopted
    UNION SELECT process, operation FROM reordered UNION SELECT process, operation FROM unjoined
    UNION SELECT process, operation FROM runs JOIN narrow USING (topic_index, partition)
        WHERE first <= highest AND last >= lowest
    UNION SELECT process, operation FROM copies LEFT JOIN group_offsets ON group_offsets.partition = source_partition
        WHERE source_offset >= coalesce(committed_offset, 0)
    UNION SELECT process, operation FROM copies SEMI JOIN copied_otherwise
        ON copies.source_partition = copied_otherwise.source_partition AND source_offset >> 8 = block
), every AS (
    SELECT topic_index, partition, first AS lowest, last AS highest FROM runs SEMI JOIN named USING (process, operation)
    UNION ALL SELECT topic_index, partition, lowest, highest FROM unjoined
    UNION ALL SELECT topic_index, partition, "offset", "offset" FROM alone
)
-- Control records come soon after the records that they decide.
SELECT topic_index, partition, lowest - 3 AS lowest, highest + 200 AS highest FROM every
UNION ALL FROM given_otherwise;

CREATE TEMP TABLE covered AS FROM together('drilled');

SET VARIABLE log_drilled = reading('log', 'covered');
SET VARIABLE committed_drilled = reading('committed', 'covered');
SET VARIABLE uncommitted_drilled = reading('uncommitted', 'covered');

CREATE TEMP TABLE log_there AS
    SELECT topic_index, partition, "offset", control, transactional, producer_id, producer_epoch, sequence, genuine, valid,
        process, operation, "index", "count", send_order, intended_topic_index, intended_partition, source_partition,
        source_offset, digest, identity_digest
    FROM query(getvariable('log_drilled'));
CREATE TEMP TABLE committed_there AS
    SELECT topic_index, partition, "offset", process, operation, "index", digest, identity_digest
    FROM query(getvariable('committed_drilled'));
CREATE TEMP TABLE uncommitted_there AS
    SELECT topic_index, partition, "offset", process, operation, "index", digest, identity_digest
    FROM query(getvariable('uncommitted_drilled'));

CREATE TEMP TABLE unsequenced AS
WITH held AS (
    SELECT topic_index, partition, producer_id, "offset", log_there.process, log_there.operation, "index", producer_epoch,
        sequence, lowest, numbered_before, follows
    FROM log_there JOIN unjoined USING (topic_index, partition, producer_id)
    WHERE control IS NULL AND "offset" BETWEEN lowest AND highest
), due AS (
    SELECT *, CASE
        WHEN "offset" = lowest AND NOT coalesce(follows, false) THEN CASE
            WHEN numbered_before >> 32 = producer_epoch THEN (numbered_before + 1) & 2147483647
            WHEN numbered_before IS NOT NULL OR EXISTS (FROM markers WHERE markers.topic_index = held.topic_index
                AND markers.partition = held.partition AND markers.producer_id = held.producer_id
                AND markers."offset" < held."offset") THEN 0 END
        WHEN lag(producer_epoch) OVER turns = producer_epoch THEN (lag(sequence) OVER turns + 1::BIGINT) & 2147483647
        ELSE 0 END AS number
    FROM held WINDOW turns AS (PARTITION BY topic_index, partition, producer_id ORDER BY "offset")
)
SELECT process, operation, "index", topic_index, partition, "offset" FROM due WHERE sequence <> number
UNION ALL
SELECT process, operation, "index", topic_index, partition, "offset" FROM odd_records
WHERE control IS NULL AND sequence >= 0 AND producer_epoch >= epoch_before
    AND sequence <> coalesce((number_before + 1::BIGINT) & 2147483647, 0);
CREATE TEMP TABLE suspect_places AS
    SELECT topic_index, partition, "offset" FROM log_there JOIN suspects USING (process, operation) WHERE genuine
    UNION
    FROM delivered
    UNION
    SELECT topic_index, partition, "offset" FROM (
        SELECT topic_index, partition, "offset", digest, identity_digest, 1 AS n
        FROM log_there WHERE control IS NULL
        UNION ALL
        SELECT topic_index, partition, "offset", digest, identity_digest, -1 FROM uncommitted_there
    ) JOIN given_otherwise USING (topic_index, partition) WHERE "offset" BETWEEN lowest AND highest
    GROUP BY topic_index, partition, "offset", digest, identity_digest HAVING sum(n) <> 0
    UNION
    FROM foreigners;

-- Rows of the log, in a table of this name, with their outcomes.
CREATE TEMP MACRO with_outcomes(log_rows) AS TABLE
    SELECT held.*, CASE WHEN control IS NOT NULL THEN NULL WHEN NOT transactional THEN 'commit'
        ELSE coalesce(decision, 'open') END AS outcome
    FROM query_table(log_rows) AS held ASOF LEFT JOIN (FROM markers WHERE decision IS NOT NULL) AS m
        ON held.topic_index = m.topic_index AND held.partition = m.partition AND held.producer_id = m.producer_id
        AND held."offset" < m."offset";

CREATE TEMP TABLE places AS
WITH held AS (
    SELECT topic_index, partition, "offset", control, transactional, producer_id, genuine, valid, process, operation,
        "index", "count", intended_topic_index, intended_partition, source_offset, digest, identity_digest
    FROM log_there SEMI JOIN suspect_places USING (topic_index, partition, "offset")
), decided AS (
    FROM with_outcomes('held')
), given AS (
    SELECT topic_index, partition, "offset", count(*) FILTER (capture = 'c') AS committed,
        count(*) FILTER (capture = 'u') AS uncommitted, min(digest) AS digest_min, max(digest) AS digest_max,
        min(identity_digest) AS part_min, max(identity_digest) AS part_max,
        arg_max(struct_pack(p := process, o := operation, i := "index"), identity_digest) AS late,
        arg_min(struct_pack(p := process, o := operation, i := "index"), identity_digest) AS early
    FROM (SELECT 'c' AS capture, * FROM committed_there
        UNION ALL SELECT 'u', * FROM uncommitted_there)
    SEMI JOIN suspect_places USING (topic_index, partition, "offset")
    GROUP BY topic_index, partition, "offset"
)
SELECT topic_index, partition, "offset", control, transactional, producer_id, coalesce(genuine, false) AS genuine, valid,
    process, operation, "index", "count", intended_topic_index, intended_partition, source_offset, outcome,
    decided.partition IS NOT NULL AS in_log, coalesce(committed, 0) AS committed, coalesce(uncommitted, 0) AS uncommitted,
    coalesce(digest <> digest_min OR digest <> digest_max OR identity_digest <> part_min OR identity_digest <> part_max,
        false) OR digest_min <> digest_max OR part_min <> part_max OR (control IS NOT NULL AND given.partition IS NOT NULL)
        OR decided.partition IS NULL AS inconsistent,
    CASE WHEN coalesce(part_max <> identity_digest, true) THEN late ELSE early END AS gone,
    told, plain, size, high_watermark
FROM decided FULL JOIN given USING (topic_index, partition, "offset") LEFT JOIN ends USING (topic_index, partition)
    LEFT JOIN operations USING (process, operation);

-- Every record of a suspect operation that was promised or found, with its outcome.
CREATE TEMP TABLE records AS
WITH promised AS (
    SELECT process, operation, unnest(range(size))::INT AS "index", true AS expected
    FROM operations SEMI JOIN suspects USING (process, operation) WHERE told IN ('committed', 'unknown')
), found AS (
    SELECT process, operation, "index", count(*) FILTER (outcome = 'commit') AS copies,
        bool_or(outcome = 'commit' AND committed > 0) AS visible, bool_or(outcome = 'open') AS open,
        max("count") AS carried
    FROM places WHERE in_log AND genuine AND control IS NULL GROUP BY ALL
)
SELECT process, operation, "index", coalesce(expected, false) AS expected, answered."offset" IS NOT NULL AS acked,
    topic_index, partition, "offset", coalesce(copies, 0) AS copies, coalesce(visible, false) AS visible, told, plain,
    CASE WHEN size > 0 THEN size ELSE max(carried) OVER whole END AS size,
    count(*) FILTER (visible) OVER whole AS seen, coalesce(bool_or(open) OVER whole, false) AS any_open
FROM promised FULL JOIN answered USING (process, operation, "index") FULL JOIN found USING (process, operation, "index")
    JOIN operations USING (process, operation)
WINDOW whole AS (PARTITION BY process, operation);

-- Findings ------------------------------------------------------------------------------------------------------------

-- The index of a record that is known by its place.
CREATE TEMP TABLE indexes AS
    SELECT topic_index, partition, "offset", process, operation, "index"
    FROM log_there SEMI JOIN (
        SELECT topic_index, partition, "offset" FROM hung
        UNION SELECT topic_index, partition, "offset" FROM adopted
        UNION SELECT place[1], place[2], place[3] FROM zombies
        UNION SELECT topic_index, source_partition, source_offset FROM uncopied, group_offsets
            WHERE group_offsets.partition = source_partition
    ) AS wanted USING (topic_index, partition, "offset");

CREATE TEMP TABLE found AS
SELECT 'lost-write' AS anomaly, process, operation, "index" AS record, topic_index, partition, "offset", NULL AS observer
FROM records WHERE copies = 0 AND ((told = 'committed' AND expected AND NOT (seen > 0 OR any_open)) OR (plain AND acked))
UNION ALL
SELECT DISTINCT 'torn-transaction', process, operation, NULL, NULL, NULL, NULL, NULL
FROM records WHERE told IN ('committed', 'unknown') AND seen > 0 AND seen < size
UNION ALL
SELECT 'hidden-committed', process, operation, "index", topic_index, partition, "offset", NULL
FROM places WHERE in_log AND genuine AND outcome = 'commit' AND committed = 0
    AND NOT EXISTS (FROM records WHERE records.told IS NOT NULL AND seen > 0
        AND records.process = places.process AND records.operation = places.operation)
UNION ALL
SELECT 'aborted-read', process, operation, "index", topic_index, partition, "offset", 'committed'
FROM places WHERE genuine AND committed > 0 AND (outcome = 'abort' OR told = 'aborted')
UNION ALL
SELECT 'inconsistent-offset', gone.p, gone.o, gone.i, topic_index, partition, "offset", NULL
FROM places WHERE inconsistent
UNION ALL
SELECT 'nonmonotonic-poll', process, operation, "index", topic_index, partition, "offset", observer
FROM places, (VALUES ('committed'), ('uncommitted')) AS captures(observer)
WHERE (CASE observer WHEN 'committed' THEN committed ELSE uncommitted END) > 1
UNION ALL
SELECT 'poll-skip', process, operation, "index", topic_index, partition, "offset", 'uncommitted'
FROM places WHERE in_log AND control IS NULL AND uncommitted = 0 AND "offset" < high_watermark
UNION ALL
SELECT 'phantom-record', process, operation, "index", topic_index, partition, "offset", NULL
FROM places WHERE in_log AND control IS NULL AND (NOT genuine OR plain IS NULL
    OR "index" >= (CASE WHEN size > 0 THEN size ELSE "count" END)
    OR topic_index <> intended_topic_index OR partition <> intended_partition)
UNION ALL
SELECT 'duplicate', process, operation, "index", topic_index, partition, "offset", NULL
FROM (FROM places SEMI JOIN operations USING (process, operation)
    WHERE in_log AND genuine AND outcome = 'commit' AND source_offset = -1)
QUALIFY row_number() OVER (PARTITION BY process, operation, "index" ORDER BY topic_index, partition, "offset") = 2
UNION ALL
SELECT 'duplicate', process, operation, "index", topic_index, partition, "offset", NULL
FROM (FROM copies SEMI JOIN (
    SELECT source_partition, block FROM copied_otherwise
    UNION SELECT source_partition, source_offset >> 8 FROM copies
        LEFT JOIN group_offsets ON group_offsets.partition = source_partition
        WHERE source_offset >= coalesce(committed_offset, 0)
    ) AS blocks ON copies.source_partition = blocks.source_partition AND source_offset >> 8 = block)
QUALIFY row_number() OVER (PARTITION BY source_partition, source_offset, output
    ORDER BY topic_index, partition, "offset") = 2
UNION ALL
SELECT 'offset-without-output', process, operation, "index", topic_index, partition, "offset", NULL
FROM indexes JOIN topics USING (topic_index) SEMI JOIN uncopied
    ON role = 'input' AND partition = source_partition AND "offset" = source_offset
UNION ALL
SELECT 'output-without-offset', process, operation, "index", copies.topic_index, copies.partition, "offset", NULL
FROM copies LEFT JOIN group_offsets ON group_offsets.partition = source_partition
WHERE source_offset >= coalesce(committed_offset, 0)
UNION ALL
SELECT 'zombie-write', zombies.process, zombies.operation, "index", topic_index, partition, "offset", NULL
FROM zombies JOIN indexes ON place = row(topic_index, partition, "offset")
UNION ALL
SELECT 'reordered-write', process, operation, "index", topic_index, partition, "offset", NULL FROM reordered
UNION ALL
SELECT 'broken-sequence', process, operation, "index", topic_index, partition, "offset", NULL FROM unsequenced
UNION ALL
SELECT kind, indexes.process, indexes.operation, "index", topic_index, partition, "offset", NULL
FROM (SELECT 'hung-transaction' AS kind, topic_index, partition, "offset" FROM hung
    UNION ALL SELECT 'decided-late', topic_index, partition, "offset" FROM adopted)
    AS stands LEFT JOIN indexes USING (topic_index, partition, "offset")
UNION ALL
SELECT 'stuck-lso', NULL, NULL, NULL, topic_index, partition, last_stable_offset, NULL
FROM ends ANTI JOIN hung USING (topic_index, partition) WHERE last_stable_offset < high_watermark;
