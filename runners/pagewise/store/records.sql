-- From the lines of records.jsonl, as `staged` has them, to rows of `records`.
INSERT INTO records BY NAME
SELECT * EXCLUDE (of_pages, of_placement) FROM (SELECT
    f.result,
    coalesce(run.kernel, s.kernel) AS kernel,
    s.kernel AS program,
    s.started,
    s.status,
    -- The rules of pagewise.compare.validity.
    CASE
        WHEN s.status <> 'ok' THEN s.status
        WHEN modelled IS NOT NULL THEN NULL
        WHEN NOT validation.passed THEN 'check_failed'
        WHEN pages.policy <> coalesce(nullif(run.pages, ''), configuration.hugepages) THEN 'wrong_pages'
        WHEN pages.policy = 'none' THEN CASE WHEN pages.huge_coverage > 0 THEN 'wrong_pages' END
        WHEN pages.huge_coverage < coalesce(pages.enough_coverage, getvariable('enough_coverage'))
            OR pages.page_size_requested_bytes <> pages.page_size_observed_bytes THEN 'wrong_pages'
    END AS of_pages,
    CASE WHEN s.status = 'ok' AND modelled IS NULL
              AND (list_sort(run.bound.had.cpus) <> list_sort(run.bound.cpus)
                   OR run.bound.had.memory <> run.bound.memory
                   OR NOT list_has_all(run.bound.cpus, placement.cpus)
                   OR placement.threads = run.bound.threads AND placement.threads = len(placement.cpus)
                      AND len(list_distinct(placement.cpus)) < len(placement.cpus))
         THEN 'wrong_placement' END AS of_placement,
    coalesce(of_pages, of_placement) AS fault,
    failure.message,
    failure.remedy,
    configuration.compiler,
    configuration.compiler_version,
    configuration.compiler_options,
    coalesce(nullif(run.pages, ''), configuration.hugepages) AS hugepages,
    configuration.hugepages AS built_hugepages,
    configuration.prefetch,
    configuration.stores,
    configuration.openmp,
    configuration.papi,
    options,
    sizes.elements,
    sizes.element_bytes,
    sizes.arrays,
    sizes.working_set_bytes,
    sizes.array_spacing_bytes,
    list_median(seconds.repetitions) / coalesce(passes_per_repetition, 1) AS seconds,
    seconds.repetitions,
    passes_per_repetition,
    seconds.populate AS populate_seconds,
    run.wall_seconds,
    traffic.bytes_stream,
    traffic.bytes_hardware,
    traffic.flops,
    metrics,
    validation.passed AS validation_passed,
    validation.error AS validation_error,
    pages.page_size_requested_bytes,
    pages.page_size_observed_bytes,
    pages.huge_coverage,
    page_faults.populate_minor + coalesce(page_faults.populate_major, 0) AS populate_faults,
    page_faults.compute_minor + coalesce(page_faults.compute_major, 0) AS compute_faults,
    CASE WHEN counters['unavailable'] IS NULL THEN TRY_CAST(counters AS MAP(VARCHAR, DOUBLE)) END AS counters,
    counters['unavailable'] AS counters_unavailable,
    counters_source,
    regions,
    modelled,
    placement.threads,
    placement.cpus AS placement_cpus,
    run.bound.name AS placement_name,
    run.bound.had.memory AS memory_policy,
    placement.numa_nodes,
    host.hostname,
    host.cpu,
    host.kernel AS kernel_release,
    run.module,
    run.pages AS told_pages,
    run.placement AS told_placement,
    run.hash,
    run.builder,
    run.series,
    run.sweep AS swept,
    run.round,
    run.position,
    run."group" AS event_group,
    run.exit_code,
    run.log
FROM staged AS s JOIN taken AS f ON f.file = s.filename);
