"""ReFrame's settings whatever the site: what it keeps, and where. A site's own file comes after it.

All that ReFrame writes goes into results/reframe of this checkout, or where PAGEWISE_CLUSTER_WORK says.
"""

import os
from pathlib import Path

_work = Path(os.environ.get("PAGEWISE_CLUSTER_WORK", Path(__file__).parents[4] / "results" / "reframe"))
_work.mkdir(parents=True, exist_ok=True)

site_configuration = {
    "general": [
        {
            "report_file": str(_work / "run-report.json"),
            # A batch script may say more than one line about why it failed.
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
