-- The store's tables and views; docs/reference/results.md describes them for users.

CREATE TABLE IF NOT EXISTS store (layout INTEGER NOT NULL);

CREATE TABLE IF NOT EXISTS results (
    result VARCHAR PRIMARY KEY,     -- the same wherever the folder is copied to
    folder VARCHAR NOT NULL,
    name VARCHAR,
    kind VARCHAR NOT NULL,          -- kernels, program, programs, counters, simulation, records
    schema VARCHAR,
    created TIMESTAMP,
    finished TIMESTAMP,
    state VARCHAR,                  -- running, complete, interrupted, failed
    partial BOOLEAN NOT NULL,       -- something of it could not be read: `faults`
    faults VARCHAR[] NOT NULL,
    hostname VARCHAR,
    cpu VARCHAR,
    architecture VARCHAR,
    kernel_release VARCHAR,
    memory_bytes BIGINT,
    cpus INTEGER,
    smt BOOLEAN,
    numa_nodes INTEGER,
    base_page_size_bytes BIGINT,
    thp VARCHAR,                    -- always, madvise, never
    thp_defrag VARCHAR,
    governors VARCHAR[],
    virtual_machine VARCHAR,
    container BOOLEAN,
    threads INTEGER,
    rounds INTEGER,
    seed BIGINT,
    baseline VARCHAR,
    environment VARCHAR,
    prefetchers_off VARCHAR[],
    pagewise VARCHAR,
    project_commit VARCHAR,
    project_dirty BOOLEAN,
    lockfile_sha256 VARCHAR,
    command VARCHAR[],
    manifest JSON
);

-- Where results were found, and what their files looked like: what has not changed is not read again.
CREATE TABLE IF NOT EXISTS sources (
    folder VARCHAR PRIMARY KEY,
    result VARCHAR NOT NULL,
    print VARCHAR NOT NULL,
    bytes BIGINT NOT NULL
);

-- What was to be measured: a row for each kernel and distinct configuration of a result.
CREATE TABLE IF NOT EXISTS cells (
    result VARCHAR NOT NULL,
    kernel VARCHAR NOT NULL,
    kernel_group VARCHAR,
    module VARCHAR NOT NULL,
    run_pages VARCHAR,
    run_placement VARCHAR,
    run_options VARCHAR,
    package VARCHAR,
    compiler VARCHAR NOT NULL,
    hugepages VARCHAR NOT NULL,
    prefetch VARCHAR NOT NULL,
    stores VARCHAR NOT NULL,
    loop VARCHAR NOT NULL,
    library VARCHAR,                -- these two NULL: the system's, the compiler's
    runtime VARCHAR,
    simd VARCHAR,                   -- NULL: as wide as the compiler's flags say
    sector VARCHAR,                 -- NULL: no sectors of the caches
    flags VARCHAR,                  -- NULL: the project's own set
    target VARCHAR,
    hash VARCHAR,
    is_baseline BOOLEAN NOT NULL,
    stands_for INTEGER NOT NULL,
    -- As `pagewise report` judges it; NULL for results that are no comparison.
    excluded VARCHAR,               -- the code, NULL: it is ranked
    excluded_reason VARCHAR,
    runs INTEGER,
    rounds INTEGER,
    seconds DOUBLE,                 -- median of its valid runs
    baseline_seconds DOUBLE,
    time_ratio DOUBLE,              -- to the baseline, NULL: excluded, or nothing to compare with
    low DOUBLE,                     -- its 95 % interval
    high DOUBLE,
    pairs INTEGER,
    noise_floor DOUBLE,
    p_corrected DOUBLE,
    verdict VARCHAR,                -- faster, slower, inconclusive
    reason VARCHAR                  -- why it is inconclusive
);

CREATE TABLE IF NOT EXISTS records (
    result VARCHAR NOT NULL,
    kernel VARCHAR NOT NULL,
    program VARCHAR NOT NULL,
    started TIMESTAMP NOT NULL,
    status VARCHAR NOT NULL,
    excluded VARCHAR,               -- the code of its or its configuration's fault, NULL: it is ranked
    message VARCHAR,
    remedy VARCHAR,
    compiler VARCHAR NOT NULL,
    compiler_version VARCHAR,
    compiler_options VARCHAR,
    hugepages VARCHAR NOT NULL,     -- the policy that it ran under
    built_hugepages VARCHAR NOT NULL,
    prefetch VARCHAR NOT NULL,
    stores VARCHAR NOT NULL,
    loop VARCHAR NOT NULL,
    openmp BOOLEAN,
    papi BOOLEAN,
    options MAP(VARCHAR, VARCHAR),
    elements BIGINT,
    element_bytes BIGINT,
    arrays BIGINT,
    working_set_bytes BIGINT,
    array_spacing_bytes BIGINT,
    seconds DOUBLE,                 -- of a pass: the median repetition by its passes
    repetitions DOUBLE[],           -- seconds of each repetition
    passes_per_repetition BIGINT,
    populate_seconds DOUBLE,
    wall_seconds DOUBLE,
    bytes_stream DOUBLE,
    bytes_hardware DOUBLE,
    flops DOUBLE,
    metrics MAP(VARCHAR, DOUBLE),
    validation_passed BOOLEAN,
    validation_error DOUBLE,
    page_size_requested_bytes BIGINT,
    page_size_observed_bytes BIGINT,
    huge_coverage DOUBLE,
    populate_faults BIGINT,
    compute_faults BIGINT,
    counters MAP(VARCHAR, DOUBLE),
    counters_unavailable VARCHAR,
    counters_source VARCHAR,
    regions STRUCT(name VARCHAR, path VARCHAR, calls BIGINT, threads INTEGER, seconds DOUBLE,
                   seconds_exclusive DOUBLE, counts MAP(VARCHAR, DOUBLE))[],
    modelled STRUCT(geometry VARCHAR, tool VARCHAR, pages VARCHAR, passes BIGINT, counts MAP(VARCHAR, BIGINT)),
    threads INTEGER,
    placement_name VARCHAR,         -- compact, scatter-smt2, cpus:0-3, ...
    ranks INTEGER,                  -- of MPI; NULL: without a launcher
    placement_cpus INTEGER[],
    memory_policy VARCHAR,          -- of its process, as in numa_maps
    numa_nodes INTEGER[],
    migrated INTEGER,               -- threads that changed their CPU in the timed part; NULL: not reported
    hostname VARCHAR,
    cpu VARCHAR,
    kernel_release VARCHAR,
    module VARCHAR,
    run_pages VARCHAR,             -- the policy of the run, where it is not the built one
    run_placement VARCHAR,         -- the placement of its cell, where several were compared
    run_options VARCHAR,           -- the options of its cell beside the kernel's own: scheme=flash,layout=soa
    hash VARCHAR,
    builder VARCHAR,
    series VARCHAR,                 -- compare, aa, sweep, trial, counters
    swept VARCHAR,                  -- what a sweep goes over: working-set, prefetch-distance, ...
    round INTEGER,
    position INTEGER,
    event_group VARCHAR,
    exit_code INTEGER,
    log VARCHAR
);

-- The runs that are ranked, with their node and date. `repeat` counts a baseline's runs within a round.
CREATE OR REPLACE VIEW runs AS
SELECT c.result, r.hostname, r.created, r.kernel_release, r.cpu, r.threads, r.name, c.kernel, c.compiler,
       c.hugepages, c.prefetch, c.stores, c.loop, c.module, c.run_pages, c.run_placement, c.run_options, c.is_baseline, m.round, m.series,
       row_number() OVER (PARTITION BY c.result, c.kernel, c.module, c.run_pages, c.run_placement, c.run_options, m.round
                          ORDER BY m.series = 'aa', m.position) AS repeat,
       m.seconds, m.populate_seconds, m.metrics, m.huge_coverage
FROM records AS m
JOIN cells AS c ON c.result = m.result AND c.kernel = m.kernel AND c.module = m.module
               AND c.run_pages IS NOT DISTINCT FROM m.run_pages
               AND c.run_placement IS NOT DISTINCT FROM m.run_placement
               AND c.run_options IS NOT DISTINCT FROM m.run_options
JOIN results AS r ON r.result = m.result
WHERE m.excluded IS NULL AND m.series IN ('compare', 'aa') AND m.seconds IS NOT NULL;

-- The configurations that are compared with their baselines, with the verdicts of the reports.
CREATE OR REPLACE VIEW ratios AS
SELECT c.result, r.hostname, r.created, r.kernel_release, r.cpu, r.threads, r.name, c.kernel, c.compiler,
       c.hugepages, c.prefetch, c.stores, c.loop, c.module, c.run_pages, c.run_placement, c.run_options, c.time_ratio,
       c.low, c.high, c.pairs, c.noise_floor, c.p_corrected, c.verdict, c.reason, c.seconds, c.baseline_seconds
FROM cells AS c JOIN results AS r USING (result)
WHERE c.time_ratio IS NOT NULL;
