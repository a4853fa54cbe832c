-- What could not be ranked, where and how often.
SELECT r.hostname, m.kernel, m.compiler, m.hugepages, m.fault, count(*) AS runs, max(r.created) AS last,
       any_value(m.message) AS message
FROM records AS m JOIN results AS r USING (result)
WHERE m.fault IS NOT NULL
GROUP BY ALL
ORDER BY runs DESC, r.hostname, m.kernel, m.hugepages;
