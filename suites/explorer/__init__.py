"""A seeded exploration of what brokers answer to rival producers of one transactional id, against a model."""
