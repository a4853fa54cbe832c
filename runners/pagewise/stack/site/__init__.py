"""Sites: what a machine brings, a folder of envs/sites."""
