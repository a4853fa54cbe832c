"""ReFrame's settings for all sites: what it keeps, and where. A site's own file is read after it.

ReFrame writes to results/reframe of this checkout, or to PAGEWISE_CLUSTER_WORK.
"""

import os
from pathlib import Path

_work = Path(os.environ.get("PAGEWISE_CLUSTER_WORK", Path(__file__).parents[4] / "results" / "reframe"))
_work.mkdir(parents=True, exist_ok=True)

site_configuration = {
    "general": [
        {
            "report_file": str(_work / "run-report.json"),
            # A batch script may print several lines about why it failed.
            "failure_inspect_lines": 20,
        }
    ],
    "storage": [{"enable": False}],
    "logging": [
        {
            "handlers": [
                {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"},
                {
                    "type": "file",
                    "name": str(_work / "reframe.log"),
                    "level": "debug",
                    "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                    "append": True,
                },
            ],
            "handlers_perflog": [
                {
                    "type": "filelog",
                    "prefix": "%(check_system)s/%(check_partition)s",
                    "level": "info",
                    "format": "%(check_job_completion_time)s|%(check_info)s|%(check_job_nodelist)s|"
                    "%(check_perfvalues)s",
                    "format_perfvars": "%(check_perf_var)s|%(check_perf_value)s|%(check_perf_unit)s|",
                    "append": True,
                    "basedir": str(_work / "perflogs"),
                }
            ],
        }
    ],
}
