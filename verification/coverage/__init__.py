"""Whether a scenario was really tried: floors, and measures that a fault met the workload."""
