-- Which runs are excluded, where and how often.
SELECT r.hostname, m.kernel, m.compiler, m.hugepages, m.excluded, count(*) AS runs, max(r.created) AS last,
       any_value(m.message) AS message
FROM records AS m JOIN results AS r USING (result)
WHERE m.excluded IS NOT NULL
GROUP BY ALL
ORDER BY runs DESC, r.hostname, m.kernel, m.hugepages;
