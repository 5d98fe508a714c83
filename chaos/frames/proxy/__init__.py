"""The frame proxy alone: a proxy in front of a cluster for tests of any Kafka client (`docs/frame-proxy.md`).

It has one listener per broker and rewrites addresses in responses, so that clients stay behind it. The frame-aware links
of `chaos.frames` do everything else.
"""
