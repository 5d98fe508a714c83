"""Errors of Spark become one line, and every failure ends with the exit code of the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from tests.support.planted.cases import CASES
from tests.support.planted.files import write
from verification.command_line import end_with
from verification.evidence.rows import all_rows
from verification.evidence.run_evidence import read_run
from verification.judge.assemble import conclude
from verification.judge.primary_findings import attribute
from verification.reference import judge_rows
from verification.spark.errors import in_a_line
from verification.spark.remote_evidence import _one_sentence
from verification.vocabulary.errors import SessionError, UnfitEvidenceError
from verification.vocabulary.verdict import ExitCode, Verdict

PLACE = "s3a://bucket/run"
CALL = "An error occurred while calling o72.load.\n: "
SDK = "software.amazon.awssdk.services.s3.model."
NO_BUCKET = (
    "The specified bucket does not exist (Service: S3, Status Code: 404, Request ID: CosEAD) (SDK Attempt Count: 1)"
)
UNREACHED = (
    "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request: "
    "Connect to 127.0.0.1:9 [/127.0.0.1] failed: Connection refused (SDK Attempt Count: 6)"
)
#: What sessions raised, with the first line of each trace only.
SAID = {
    CALL
    + f"org.apache.hadoop.fs.s3a.UnknownStoreException: `{PLACE}': getFileStatus on {PLACE}: {SDK}NoSuchBucketException: "
    f"{NO_BUCKET}:NoSuchBucket: {NO_BUCKET}\n\tat org.apache.hadoop.fs.s3a.S3AUtils.translateException(S3AUtils.java:273)\n"
    f"Caused by: {SDK}NoSuchBucketException: {NO_BUCKET}": (
        f"UnknownStoreException: `{PLACE}': getFileStatus on {PLACE}: NoSuchBucketException: "
        "The specified bucket does not exist (status 404): NoSuchBucket"
    ),
    CALL + f"java.nio.file.AccessDeniedException: {PLACE}: getFileStatus on {PLACE}: {SDK}S3Exception: Forbidden "
    "(Service: S3, Status Code: 403, Request ID: 44425):null": (
        f"AccessDeniedException: {PLACE}: getFileStatus on {PLACE}: S3Exception: Forbidden (status 403)"
    ),
    CALL + f"java.net.ConnectException: getFileStatus on {PLACE}: {UNREACHED}:    {UNREACHED}: Connection refused": (
        f"ConnectException: getFileStatus on {PLACE}: SdkClientException: Unable to execute HTTP request: "
        "Connect to 127.0.0.1:9 [/127.0.0.1] failed: Connection refused"
    ),
    CALL + "org.apache.spark.SparkException: Exception thrown in awaitResult: \n\tat java.base/java.lang.Thread.run\n"
    "Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
    f"{PLACE}/a.  SQLSTATE: KD001\n\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError\n"
    f"Caused by: java.io.IOException: Server error accessing {PLACE}/a, request failed with: "
    "(Service: S3, Status Code: 403, Request ID: null) (SDK Attempt Count: 1)": (
        f"[FAILED_READ_FILE.NO_HINT] Encountered error while reading file {PLACE}/a: IOException: "
        f"Server error accessing {PLACE}/a, request failed with: (status 403)"
    ),
    f"(org.apache.hadoop.fs.s3a.UnknownStoreException) `{PLACE}': no such bucket\n\nJVM stacktrace:\n": (
        f"(UnknownStoreException) `{PLACE}': no such bucket"
    ),
    f"[PATH_NOT_FOUND] Path does not exist: {PLACE}. SQLSTATE: 42K03": (
        f"[PATH_NOT_FOUND] Path does not exist: {PLACE}"
    ),
    "no such thing\nsecond line": "no such thing",
    "": "Exception('')",
}


@pytest.mark.parametrize(("raised", "said"), SAID.items())
def test_pages_become_a_line(raised: str, said: str) -> None:
    """The error and its cause, without packages, numbers of requests and repetitions."""
    assert in_a_line(Exception(raised)) == said


@pytest.mark.parametrize(
    ("raised", "advice"),
    [
        (
            CALL + "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
            "packages=",
        ),
        (CALL + "java.lang.NoClassDefFoundError: software/amazon/awssdk/auth/AwsCredentialsProvider", "packages="),
        (CALL + 'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"', "s3a://"),
    ],
)
def test_who_lacks_a_connector_is_told_how_to_bring_it(raised: str, advice: str) -> None:
    """Jars, or the name that Hadoop has for the file system."""
    with (
        pytest.raises(UnfitEvidenceError, match=f"^{PLACE} cannot be read: .*; .*{advice}") as refused,
        _one_sentence(PLACE),
    ):
        raise RuntimeError(raised)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "Connection refused"), Py4JNetworkError("Answer is empty"), Py4JError("no")]
)
def test_a_jvm_that_has_ended_is_no_matter_of_the_evidence(error: Exception) -> None:
    """A JVM mostly ends for lack of memory, and the user can give it more."""
    with pytest.raises(SessionError, match=r"JVM has ended.*spark\.driver\.memory"), _one_sentence(PLACE):
        raise error


def test_what_was_found_stays_found_when_its_known_bug_cannot_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence that vanishes while it is judged hides nothing, and is not silent."""

    def vanished(*_: object) -> None:
        raise OSError("the evidence has gone")

    monkeypatch.setattr("verification.judge.assemble.recognise", vanished)
    evidence = read_run(write(CASES["lost_append"]("lost_append")[0], tmp_path / "run"))
    verdict = conclude(evidence, attribute(judge_rows(all_rows(evidence))), {}, ("before",))
    assert verdict.verdict is Verdict.FAIL
    assert [each.anomaly for each in verdict.findings] == ["lost-write"]
    assert verdict.crashed == ("before", "known bugs could not be looked for: the evidence has gone")


def test_an_error_of_ours_is_no_violation(capsys: pytest.CaptureFixture[str]) -> None:
    """Python would end with 1, which says that something was found."""

    def main() -> int:
        raise ValueError("broken")

    with pytest.raises(SystemExit) as ended:
        end_with(main, program="it", kept="nothing")
    assert ended.value.code == ExitCode.ENVIRONMENT
    assert "ValueError: broken" in capsys.readouterr().err
