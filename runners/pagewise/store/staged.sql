-- Lines of records as DuckDB reads them; pagewise.record/1 describes them.
CREATE OR REPLACE TEMP TABLE staged (
    filename VARCHAR,
    schema VARCHAR,
    kernel VARCHAR,
    started TIMESTAMP,
    status VARCHAR,
    failure STRUCT(exit_code INTEGER, message VARCHAR, remedy VARCHAR),
    configuration STRUCT(compiler VARCHAR, compiler_version VARCHAR, compiler_options VARCHAR, hugepages VARCHAR,
                         prefetch VARCHAR, stores VARCHAR, openmp BOOLEAN, papi BOOLEAN),
    options MAP(VARCHAR, VARCHAR),
    sizes STRUCT(elements BIGINT, element_bytes BIGINT, arrays BIGINT, working_set_bytes BIGINT,
                 array_spacing_bytes BIGINT),
    seconds STRUCT(populate DOUBLE, repetitions DOUBLE[]),
    passes_per_repetition BIGINT,
    traffic STRUCT(bytes_stream DOUBLE, bytes_hardware DOUBLE, flops DOUBLE),
    metrics MAP(VARCHAR, DOUBLE),
    validation STRUCT(passed BOOLEAN, method VARCHAR, error DOUBLE, tolerance DOUBLE),
    pages STRUCT(policy VARCHAR, page_size_requested_bytes BIGINT, page_size_observed_bytes BIGINT,
                 huge_coverage DOUBLE, enough_coverage DOUBLE),
    page_faults STRUCT(populate_minor BIGINT, populate_major BIGINT, compute_minor BIGINT, compute_major BIGINT),
    counters MAP(VARCHAR, VARCHAR),
    counters_source VARCHAR,
    regions STRUCT(name VARCHAR, path VARCHAR, calls BIGINT, threads INTEGER, seconds DOUBLE,
                   seconds_exclusive DOUBLE, counts MAP(VARCHAR, DOUBLE))[],
    modelled STRUCT(geometry VARCHAR, tool VARCHAR, pages VARCHAR, passes BIGINT, counts MAP(VARCHAR, BIGINT)),
    placement STRUCT(threads INTEGER, cpus INTEGER[], numa_nodes INTEGER[]),
    host STRUCT(hostname VARCHAR, cpu VARCHAR, kernel VARCHAR),
    run STRUCT(kernel VARCHAR, module VARCHAR, hash VARCHAR, builder VARCHAR, round INTEGER, position INTEGER,
               series VARCHAR, wall_seconds DOUBLE, exit_code INTEGER, pages VARCHAR, placement VARCHAR,
               bound STRUCT(name VARCHAR, threads INTEGER, cpus INTEGER[], memory VARCHAR,
                            had STRUCT(cpus INTEGER[], memory VARCHAR)),
               "group" VARCHAR, sweep VARCHAR, log VARCHAR)
);

-- Whether a line is no such record: what reading cannot tell by types alone.
CREATE OR REPLACE TEMP VIEW unsound AS
SELECT DISTINCT filename FROM staged
WHERE (schema = 'pagewise.record/1'
       AND kernel IS NOT NULL AND started IS NOT NULL
       AND status IN ('ok', 'check_failed', 'pages_unavailable', 'failed')
       AND (status = 'ok') = (failure IS NULL)
       AND configuration.compiler IS NOT NULL AND configuration.hugepages IS NOT NULL
       AND configuration.prefetch IS NOT NULL AND configuration.stores IS NOT NULL
       AND (status <> 'ok' OR modelled IS NOT NULL
            OR list_min(seconds.repetitions) > 0 AND metrics IS NOT NULL AND validation.passed IS NOT NULL
               AND pages.policy IS NOT NULL AND pages.huge_coverage BETWEEN 0 AND 1
               AND pages.page_size_requested_bytes IS NOT NULL AND pages.page_size_observed_bytes IS NOT NULL
               AND placement.threads IS NOT NULL AND host.hostname IS NOT NULL)
       -- JSON has no such numbers, but DuckDB reads them.
       AND isfinite(list_sum(seconds.repetitions)) IS NOT FALSE AND isfinite(seconds.populate) IS NOT FALSE
       AND isfinite(list_sum(map_values(metrics))) IS NOT FALSE AND isfinite(run.wall_seconds) IS NOT FALSE
       AND isfinite(traffic.bytes_stream + traffic.bytes_hardware + traffic.flops) IS NOT FALSE
       AND isfinite(validation.error) IS NOT FALSE AND isfinite(validation.tolerance) IS NOT FALSE
       AND isfinite(pages.huge_coverage) IS NOT FALSE AND isfinite(pages.enough_coverage) IS NOT FALSE
       AND list_bool_or(list_transform(map_values(options),
               lambda told: NOT isfinite(coalesce(TRY_CAST(told AS DOUBLE), 0)))) IS NOT TRUE
       AND list_bool_or(list_transform(map_values(counters),
               lambda told: NOT isfinite(coalesce(TRY_CAST(told AS DOUBLE), 0)))) IS NOT TRUE
       AND (run IS NULL
            OR run.module IS NOT NULL AND run.round >= 1 AND run.position IS NOT NULL
               AND run.series IS NOT NULL)) IS NOT TRUE;
