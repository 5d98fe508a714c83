"""The words that a reader who knows Kafka needs for the report; docs/glossary.md has all of them."""

from __future__ import annotations

GLOSSARY: tuple[tuple[str, str], ...] = (
    ("TV1, TV2", "transaction protocol of a client before KIP-890, and with it"),
    ("marker", "the record that commits or aborts a transaction on one partition"),
    ("last stable offset (LSO)", "the offset up to which every transaction is decided; read_committed stops there"),
    ("answer to client", "the outcome that the client library reported to the application"),
    ("acknowledged", "the client was told that its records are in force: a commit, or a write outside transactions"),
    ("subject", "the Kafka release and the clients under test"),
    ("control", "a subject with a known defect; it tests this suite, not Kafka"),
    ("step", "one fault of a scenario's schedule"),
    ("confirmed", "observed to be in effect, not only injected"),
    ("floor", "the least that must have happened for a pass to mean something"),
    ("quiescence", "the end of a scenario: no client works, and no transaction is open that could still be decided"),
    ("capture", "all records of the run's topics, read when no client works any more"),
    ("observer", "a consumer that reads while the scenario runs"),
    ("witness", "the fewest log entries and operations that prove an example"),
    ("KB-16 and so on", "a known bug of the catalogue; a finding has its name only if the evidence has its signature"),
    ("PASS, KB-16 seen", "nothing that was claimed is violated, and the evidence shows the known bug"),
    (
        "standing risk",
        "a violation by a known bug that every supported release has, or that ordinary faults do not cause",
    ),
    ("deviation", "a violation by a known bug that only makes an answer or an administrative view wrong"),
    ("records, progress, contract", "what a bug puts at risk: data, or that work goes on, or only what an answer says"),
    (
        "ordinary, rare, contrived",
        "its cause: crashes and networks; an unusual order of messages; forged or damaged input",
    ),
    ("accepted", "named by the user with --accept or a waiver: it is shown, and does not decide"),
)
