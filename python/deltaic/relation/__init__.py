"""Relations: the plan that commands build, and what its expressions mean."""
