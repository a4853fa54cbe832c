-- The tables that `pagewise results query` shows, over the files of results; docs/reference/results.md
-- describes them. The variable `folders` names a file with one line per result.

CREATE TABLE folders AS FROM read_json(
    getvariable('folders'), format = 'newline_delimited', columns = {
        result: 'VARCHAR', folder: 'VARCHAR', faults: 'VARCHAR[]',
        manifest: 'VARCHAR', records: 'VARCHAR', analysis: 'VARCHAR'});
SET VARIABLE manifests = (SELECT coalesce(list(manifest), [getvariable('folders')]) FROM folders);
SET VARIABLE records = (SELECT coalesce(list(records), [getvariable('folders')]) FROM folders);
SET VARIABLE analyses = (SELECT coalesce(list(analysis), [getvariable('folders')]) FROM folders);

CREATE VIEW results AS
WITH read AS (
    SELECT f.*, json, from_json(json, '{
               "name": "VARCHAR", "kind": "VARCHAR", "schema": "VARCHAR", "created": "TIMESTAMP",
               "finished": "TIMESTAMP", "state": "VARCHAR", "rounds_done": "BIGINT",
               "placements": [{"threads": "BIGINT"}],
               "seed": "BIGINT", "baseline": "VARCHAR", "command": ["VARCHAR"], "host": {
                   "hostname": "VARCHAR", "cpu": "VARCHAR", "architecture": "VARCHAR", "kernel": "VARCHAR",
                   "memory_bytes": "BIGINT", "cpus": "BIGINT", "smt": "BOOLEAN", "numa_nodes": ["JSON"],
                   "base_page_size_bytes": "BIGINT", "thp": {"enabled": "VARCHAR", "defrag": "VARCHAR"},
                   "governors": ["VARCHAR"], "virtual_machine": "VARCHAR", "container": "BOOLEAN"},
               "modules": {"environment": "VARCHAR"}, "prefetchers": {"off": ["VARCHAR"]},
               "software": {"pagewise": "VARCHAR"}, "provenance": {
                   "project_commit": "VARCHAR", "project_dirty": "BOOLEAN", "lockfile_sha256": "VARCHAR"}}') AS m
    FROM read_json_objects(getvariable('manifests'), format = 'unstructured', filename = true) AS r
    JOIN folders AS f ON f.manifest = r.filename
)
SELECT result, folder, m.name, m.kind, m.schema, m.created, m.finished, m.state, len(faults) > 0 AS partial,
       faults, m.host.hostname, m.host.cpu, m.host.architecture, m.host.kernel AS kernel_release,
       m.host.memory_bytes, m.host.cpus, m.host.smt, nullif(len(m.host.numa_nodes), 0) AS numa_nodes,
       m.host.base_page_size_bytes, m.host.thp.enabled AS thp, m.host.thp.defrag AS thp_defrag,
       m.host.governors, m.host.virtual_machine, m.host.container,
       m.placements[1].threads AS threads, m.rounds_done AS rounds, m.seed,
       m.baseline, m.modules.environment, m.prefetchers.off AS prefetchers_off, m.software.pagewise,
       m.provenance.project_commit, m.provenance.project_dirty, m.provenance.lockfile_sha256, m.command,
       json AS manifest
FROM read;

-- What was to be measured, with the verdicts of the report.
CREATE VIEW cells AS
SELECT result, unnest(from_json(json->'$.cells', '[{
           "kernel": "VARCHAR", "kernel_group": "VARCHAR", "module": "VARCHAR", "run_pages": "VARCHAR",
           "run_placement": "VARCHAR", "run_options": "VARCHAR", "package": "VARCHAR", "compiler": "VARCHAR",
           "hugepages": "VARCHAR", "prefetch": "VARCHAR", "stores": "VARCHAR", "loop": "VARCHAR",
           "library": "VARCHAR", "runtime": "VARCHAR", "simd": "VARCHAR", "sector": "VARCHAR",
           "flags": "VARCHAR", "target": "VARCHAR", "hash": "VARCHAR", "is_baseline": "BOOLEAN",
           "stands_for": "BIGINT", "excluded": "VARCHAR", "excluded_reason": "VARCHAR", "runs": "BIGINT",
           "rounds": "BIGINT", "seconds": "DOUBLE", "baseline_seconds": "DOUBLE", "time_ratio": "DOUBLE",
           "low": "DOUBLE", "high": "DOUBLE", "pairs": "BIGINT", "noise_floor": "DOUBLE",
           "p_corrected": "DOUBLE", "verdict": "VARCHAR", "reason": "VARCHAR"}]'), max_depth := 2)
FROM read_json_objects(getvariable('analyses'), format = 'unstructured', filename = true) AS a
JOIN folders AS f ON f.analysis = a.filename;

-- `excluded`: by the fault of the run, of its module or of its configuration.
CREATE VIEW records AS
WITH entries AS (
    SELECT result, unnest(from_json(json->'$.excluded', '[{
               "program": "VARCHAR", "started": "TIMESTAMP", "elements": "BIGINT", "module": "VARCHAR",
               "series": "VARCHAR", "round": "BIGINT", "position": "BIGINT", "event_group": "VARCHAR",
               "code": "VARCHAR"}]')) AS e
    FROM read_json_objects(getvariable('analyses'), format = 'unstructured', filename = true) AS a
    JOIN folders AS f ON f.analysis = a.filename
), faults AS (
    SELECT result, e.program, e.started, {'elements': e.elements, 'module': e.module, 'series': e.series,
           'round': e.round, 'position': e.position, 'event_group': e.event_group} AS of_run,
           any_value(e.code) AS code
    FROM entries GROUP BY ALL
), read AS (
    FROM read_json(getvariable('records'), format = 'newline_delimited', ignore_errors = true, filename = true,
        columns = {
            kernel: 'VARCHAR', started: 'TIMESTAMP', status: 'VARCHAR',
            failure: 'STRUCT(message VARCHAR, remedy VARCHAR)',
            configuration: 'STRUCT(compiler VARCHAR, compiler_version VARCHAR, compiler_options VARCHAR,
                hugepages VARCHAR, prefetch VARCHAR, stores VARCHAR, loop VARCHAR, openmp BOOLEAN, papi BOOLEAN)',
            options: 'MAP(VARCHAR, VARCHAR)',
            sizes: 'STRUCT(elements BIGINT, element_bytes BIGINT, arrays BIGINT, working_set_bytes BIGINT,
                array_spacing_bytes BIGINT)',
            seconds: 'STRUCT(first_touch DOUBLE, repetitions DOUBLE[])', passes_per_repetition: 'BIGINT',
            traffic: 'STRUCT(bytes_stream DOUBLE, bytes_hardware DOUBLE, flops DOUBLE)',
            metrics: 'MAP(VARCHAR, DOUBLE)', validation: 'STRUCT(passed BOOLEAN, error DOUBLE)',
            pages: 'STRUCT(page_size_requested_bytes BIGINT, page_size_observed_bytes BIGINT,
                huge_coverage DOUBLE)',
            page_faults: 'STRUCT(first_touch_minor BIGINT, first_touch_major BIGINT, compute_minor BIGINT,
                compute_major BIGINT)',
            counters: 'JSON', counters_source: 'VARCHAR',
            regions: 'STRUCT(name VARCHAR, path VARCHAR, calls BIGINT, threads BIGINT, seconds DOUBLE,
                seconds_exclusive DOUBLE, counts MAP(VARCHAR, DOUBLE))[]',
            simulated: 'STRUCT(geometry VARCHAR, tool VARCHAR, pages VARCHAR, passes BIGINT,
                counts MAP(VARCHAR, BIGINT))',
            placement: 'STRUCT(threads BIGINT, cpus BIGINT[], numa_nodes BIGINT[], migrated BIGINT)',
            host: 'STRUCT(hostname VARCHAR, cpu VARCHAR, kernel VARCHAR)',
            run: 'STRUCT(kernel VARCHAR, module VARCHAR, pages VARCHAR, placement VARCHAR, options VARCHAR,
                hash VARCHAR, builder VARCHAR, series VARCHAR, sweep VARCHAR, round BIGINT, "position" BIGINT,
                "group" VARCHAR, exit_code BIGINT, log VARCHAR, wall_seconds DOUBLE, method VARCHAR,
                whole_because VARCHAR,
                bound STRUCT(name VARCHAR, ranks BIGINT, observed STRUCT(memory VARCHAR)))'})
    -- A line that is not JSON has no values.
    WHERE status IS NOT NULL AND configuration IS NOT NULL
)
SELECT f.result, coalesce(run.kernel, m.kernel) AS kernel, m.kernel AS program, m.started, status,
       coalesce(e.code, CASE WHEN run.series IN ('compare', 'aa') THEN c.excluded END) AS excluded,
       failure.message, failure.remedy, configuration.compiler, configuration.compiler_version,
       configuration.compiler_options, coalesce(run.pages, configuration.hugepages) AS hugepages,
       configuration.hugepages AS built_hugepages, configuration.prefetch, configuration.stores,
       coalesce(configuration.loop, 'explicit') AS loop, configuration.openmp, configuration.papi, options,
       sizes.elements, sizes.element_bytes, sizes.arrays, sizes.working_set_bytes, sizes.array_spacing_bytes,
       list_median(m.seconds.repetitions) / coalesce(passes_per_repetition, 1) AS seconds,
       m.seconds.repetitions, passes_per_repetition, m.seconds.first_touch AS first_touch_seconds, run.wall_seconds,
       run.method, run.whole_because,
       traffic.bytes_stream, traffic.bytes_hardware, traffic.flops, metrics,
       validation.passed AS validation_passed, validation.error AS validation_error,
       pages.page_size_requested_bytes, pages.page_size_observed_bytes, pages.huge_coverage,
       TRY_CAST(list_sum([page_faults.first_touch_minor, page_faults.first_touch_major]) AS BIGINT) AS first_touch_faults,
       TRY_CAST(list_sum([page_faults.compute_minor, page_faults.compute_major]) AS BIGINT) AS compute_faults,
       CASE WHEN counters->>'$.unavailable' IS NULL THEN TRY_CAST(counters AS MAP(VARCHAR, DOUBLE)) END
           AS counters,
       counters->>'$.unavailable' AS counters_unavailable, counters_source, regions, simulated,
       placement.threads, run.bound.name AS placement_name, run.bound.ranks, placement.cpus AS placement_cpus,
       run.bound.observed.memory AS memory_policy, placement.numa_nodes, placement.migrated, host.hostname, host.cpu,
       host.kernel AS kernel_release, run.module, run.pages AS run_pages, run.placement AS run_placement,
       run.options AS run_options, run.hash, run.builder, run.series, run.sweep AS swept, run.round,
       run."position", run."group" AS event_group, run.exit_code, run.log
FROM read AS m
JOIN folders AS f ON f.records = m.filename
LEFT JOIN faults AS e ON e.result = f.result AND e.program = m.kernel AND e.started = m.started
    AND e.of_run = {'elements': sizes.elements, 'module': run.module, 'series': run.series,
                    'round': run.round, 'position': run."position", 'event_group': run."group"}
LEFT JOIN cells AS c ON c.result = f.result AND c.kernel = coalesce(run.kernel, m.kernel)
    AND c.module = run.module AND c.run_pages IS NOT DISTINCT FROM run.pages
    AND c.run_placement IS NOT DISTINCT FROM run.placement AND c.run_options IS NOT DISTINCT FROM run.options;

-- The runs that are ranked, with their node and date. `repeat` counts a baseline's runs within a round.
CREATE VIEW runs AS
SELECT c.result, r.hostname, r.created, r.kernel_release, r.cpu, r.threads, r.name, c.kernel, c.compiler,
       c.hugepages, c.prefetch, c.stores, c.loop, c.module, c.run_pages, c.run_placement, c.run_options,
       c.is_baseline, m.round, m.series,
       row_number() OVER (PARTITION BY c.result, c.kernel, c.module, c.run_pages, c.run_placement,
                                       c.run_options, m.round
                          ORDER BY m.series = 'aa', m.position) AS repeat,
       m.seconds, m.first_touch_seconds, m.metrics, m.huge_coverage
FROM records AS m
JOIN cells AS c ON c.result = m.result AND c.kernel = m.kernel AND c.module = m.module
               AND c.run_pages IS NOT DISTINCT FROM m.run_pages
               AND c.run_placement IS NOT DISTINCT FROM m.run_placement
               AND c.run_options IS NOT DISTINCT FROM m.run_options
JOIN results AS r ON r.result = m.result
WHERE m.excluded IS NULL AND m.series IN ('compare', 'aa') AND m.seconds IS NOT NULL;

-- The configurations that are compared with their baselines, with the verdicts of the reports.
CREATE VIEW ratios AS
SELECT c.result, r.hostname, r.created, r.kernel_release, r.cpu, r.threads, r.name, c.kernel, c.compiler,
       c.hugepages, c.prefetch, c.stores, c.loop, c.module, c.run_pages, c.run_placement, c.run_options,
       c.time_ratio, c.low, c.high, c.pairs, c.noise_floor, c.p_corrected, c.verdict, c.reason, c.seconds,
       c.baseline_seconds
FROM cells AS c JOIN results AS r USING (result)
WHERE c.time_ratio IS NOT NULL;
