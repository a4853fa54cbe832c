-- What the first touch costs by page policy: seconds to first_touch a GiB.
SELECT cpu, kernel_release, hugepages, count(*) AS runs,
       round(median(first_touch_seconds / working_set_bytes * 1073741824), 4) AS seconds_per_gib
FROM records
WHERE excluded IS NULL AND working_set_bytes >= 16777216 AND first_touch_seconds > 0
GROUP BY ALL
ORDER BY cpu, kernel_release, seconds_per_gib;
