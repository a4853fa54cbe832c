# This site for ReFrame (https://reframe-hpc.readthedocs.io, Configuration Reference): an example to copy. ReFrame runs
# comparisons on every node, see docs/how-to/cluster.md.
site_configuration = {
    "systems": [
        {
            "name": "rocky",
            "descr": "Rocky Linux 9 with Slurm",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "batch",
                    # slurm needs sacct (accounting); squeue does not.
                    "scheduler": "squeue",
                    # The shell of the job starts the comparison. With srun, it is a step of the job.
                    "launcher": "local",
                    "environs": ["builtin"],
                    # Options of every job: partition, account, reservation.
                    "access": ["--partition=batch"],
                    # Jobs submitted at the same time: at least the number of nodes, at most Slurm's MaxSubmit.
                    "max_jobs": 500,
                    # Commands before the comparison, such as modules that it needs at run time:
                    # "prepare_cmds": [". /etc/profile.d/lmod.sh", "module load openmpi4/4.1.6"],
                },
            ],
        },
    ],
}
