-- The records around the examples of each finding, as `verification.judge.finding_files` chooses them. Reads the tables
-- of `verify.sql`; the result is the table `surroundings`, in the columns of `records.jsonl`.

-- Primary findings ----------------------------------------------------------------------------------------------------

-- The places of missing records of lost writes and torn transactions: acknowledged places, null without one.
CREATE TEMP TABLE missing AS
    SELECT process, operation, topic_index, partition, "offset"
    FROM records WHERE NOT visible AND told IN ('committed', 'unknown') AND seen > 0 AND seen < size;

CREATE TEMP TABLE phantoms AS
    SELECT topic_index, partition, "offset" FROM found WHERE anomaly = 'phantom-record';

CREATE TEMP TABLE missing_from AS
    SELECT topic_index, partition, min("offset") AS lowest FROM (
        SELECT topic_index, partition, "offset" FROM found WHERE anomaly = 'lost-write'
        UNION ALL SELECT topic_index, partition, "offset" FROM missing
    ) ANTI JOIN phantoms USING (topic_index, partition, "offset")
    WHERE "offset" IS NOT NULL GROUP BY ALL;

-- The processes whose numbers another finding breaks, and where; null for any process, and for any partition.
CREATE TEMP TABLE renumbered AS
    SELECT NULL::INT AS process, topic_index, partition FROM found WHERE anomaly = 'zombie-write'
    UNION SELECT process, topic_index, partition FROM missing
    UNION SELECT process, NULL, NULL FROM found WHERE anomaly = 'phantom-record' AND process IS NOT NULL
    UNION SELECT process, topic_index, partition FROM found WHERE process IS NOT NULL AND anomaly IN
        ('lost-write', 'inconsistent-offset', 'duplicate', 'reordered-write', 'hung-transaction', 'decided-late');

-- The rules 2 to 7 of `verification.judge.primary_findings`. Rule 1 has no case: no plant is at or above a last stable
-- offset that does not advance.
CREATE TEMP TABLE consequences AS
    SELECT found.* FROM found SEMI JOIN phantoms USING (topic_index, partition, "offset")
    WHERE anomaly IN ('lost-write', 'inconsistent-offset')
    UNION ALL
    SELECT * FROM found WHERE anomaly = 'torn-transaction' AND NOT EXISTS (
        FROM missing ANTI JOIN phantoms USING (topic_index, partition, "offset")
        WHERE missing.process = found.process AND missing.operation = found.operation)
    UNION ALL
    SELECT found.* FROM found JOIN missing_from USING (topic_index, partition)
        LEFT JOIN places USING (topic_index, partition, "offset")
    WHERE anomaly IN ('inconsistent-offset', 'nonmonotonic-poll', 'poll-skip')
        AND ("offset" >= lowest OR (anomaly = 'inconsistent-offset' AND NOT in_log))
    UNION ALL
    SELECT found.* FROM found SEMI JOIN missing USING (process, operation)
    WHERE anomaly IN ('inconsistent-offset', 'poll-skip')
    UNION ALL
    SELECT found.* FROM found SEMI JOIN (FROM found WHERE anomaly = 'hidden-committed') AS hidden
        USING (topic_index, partition, "offset") WHERE anomaly = 'poll-skip'
    UNION ALL
    SELECT found.* FROM found SEMI JOIN (FROM found WHERE anomaly = 'zombie-write') AS late
        USING (process, operation) WHERE anomaly = 'aborted-read'
    UNION ALL
    SELECT found.* FROM found SEMI JOIN renumbered
        ON (renumbered.process IS NULL OR renumbered.process = found.process)
        AND (renumbered.partition IS NULL
            OR (renumbered.topic_index = found.topic_index AND renumbered.partition = found.partition))
    WHERE anomaly = 'broken-sequence';

CREATE TEMP TABLE examples AS
    SELECT anomaly, topic_index, partition, "offset" AS stands, process, operation
    FROM (SELECT * FROM found EXCEPT SELECT * FROM consequences)
    QUALIFY row_number() OVER (PARTITION BY anomaly ORDER BY topic_index NULLS LAST, partition NULLS LAST,
        "offset" NULLS LAST, process NULLS LAST, operation NULLS LAST, record NULLS LAST, coalesce(observer, '')) <= 32;

-- The places that are shown -------------------------------------------------------------------------------------------

-- Runs of offsets; with an operation, only its own records there. Rows with the highest `far` are left out first.
CREATE TEMP TABLE shown AS
WITH own AS (
    SELECT DISTINCT anomaly, runs.topic_index, runs.partition, runs.producer_id, runs.process, runs.operation,
        runs.transactional, first, last
    FROM runs JOIN examples ON runs.process = examples.process AND runs.operation = examples.operation
), alike AS (
    SELECT DISTINCT anomaly, source_partition, source_offset
    FROM copied JOIN examples USING (topic_index, partition) WHERE "offset" = stands
)
SELECT anomaly, topic_index, partition, stands - 3 AS lowest, stands + 3 AS highest, NULL::INT AS process,
    NULL::BIGINT AS operation, 0 AS far
FROM examples WHERE stands IS NOT NULL
UNION
SELECT anomaly, own.topic_index, own.partition, decider."offset", decider."offset", NULL, NULL, 0
FROM own ASOF JOIN markers AS decider ON own.topic_index = decider.topic_index AND own.partition = decider.partition
    AND own.producer_id = decider.producer_id AND own.last < decider."offset"
WHERE transactional
UNION
SELECT anomaly, topic_index, partition, first, last, process, operation, 1 FROM own
UNION
SELECT anomaly, topic_index, partition, "offset", "offset", NULL, NULL, 1
FROM copied JOIN alike USING (source_partition, source_offset);

-- Place by place.
CREATE TEMP TABLE wanted AS
    SELECT anomaly, topic_index, partition, unnest(range(lowest, highest + 1)) AS "offset", process, operation, far
    FROM shown;

CREATE TEMP TABLE sought AS SELECT DISTINCT topic_index, partition, "offset" FROM wanted;

-- The evidence there --------------------------------------------------------------------------------------------------

-- Nearly all of it was read already.
CREATE TEMP TABLE beyond AS
    SELECT *, "offset" AS lowest, "offset" AS highest FROM sought WHERE NOT EXISTS (
        FROM covered WHERE covered.topic_index = sought.topic_index AND covered.partition = sought.partition
            AND sought."offset" BETWEEN covered.lowest AND covered.highest);

SET VARIABLE log_beyond = reading('log', 'beyond');
SET VARIABLE committed_beyond = reading('committed', 'beyond');
SET VARIABLE uncommitted_beyond = reading('uncommitted', 'beyond');

INSERT INTO log_there BY NAME SELECT topic_index, partition, "offset", control, transactional, producer_id,
        producer_epoch, process, operation, "index", "count", send_order, source_partition, source_offset
    FROM query(getvariable('log_beyond')) SEMI JOIN beyond USING (topic_index, partition, "offset");

INSERT INTO committed_there BY NAME SELECT topic_index, partition, "offset"
    FROM query(getvariable('committed_beyond')) SEMI JOIN beyond USING (topic_index, partition, "offset");

INSERT INTO uncommitted_there BY NAME SELECT topic_index, partition, "offset"
    FROM query(getvariable('uncommitted_beyond')) SEMI JOIN beyond USING (topic_index, partition, "offset");

-- No reader receives a record here that the log lacks, so the log has all rows. There are no live observers.
CREATE TEMP TABLE surroundings AS
WITH held AS (
    SELECT topic_index, partition, "offset", control, producer_id, producer_epoch, transactional, process, operation,
        "index", "count", send_order, source_partition, source_offset
    FROM log_there SEMI JOIN sought USING (topic_index, partition, "offset")
), decided AS (
    FROM with_outcomes('held')
), given AS (
    SELECT topic_index, partition, "offset", count(*) FILTER (is_committed) AS committed,
        count(*) FILTER (NOT is_committed) AS uncommitted
    FROM (SELECT topic_index, partition, "offset", true AS is_committed FROM committed_there
        UNION ALL SELECT topic_index, partition, "offset", false FROM uncommitted_there)
    SEMI JOIN sought USING (topic_index, partition, "offset") GROUP BY topic_index, partition, "offset"
), around AS (
    SELECT anomaly, topic_index, partition, "offset", min(far) AS far
    FROM wanted JOIN decided USING (topic_index, partition, "offset")
    WHERE wanted.process IS NULL OR (wanted.process = decided.process AND wanted.operation = decided.operation)
    GROUP BY anomaly, topic_index, partition, "offset"
    QUALIFY row_number() OVER (PARTITION BY anomaly ORDER BY min(far), topic_index, partition, "offset") <= 5000
)
SELECT anomaly, topic, topic_index, partition, "offset", true AS in_log, control, outcome, producer_id, producer_epoch,
    transactional, process, operation, "index", "count", send_order, source_partition, source_offset, told,
    coalesce(committed, 0) AS committed, coalesce(uncommitted, 0) AS uncommitted, 0 AS received, high_watermark,
    last_stable_offset
FROM around JOIN decided USING (topic_index, partition, "offset") JOIN topics USING (topic_index)
    LEFT JOIN given USING (topic_index, partition, "offset") LEFT JOIN ends USING (topic_index, partition)
    LEFT JOIN operations USING (process, operation);
