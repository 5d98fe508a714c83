"""Operations: changes to a cluster that its operator makes on purpose, scheduled and proven like faults."""
