from __future__ import annotations

import pytest

from tritonchaos.redaction import Redactor

GITHUB = "ghp_" + "a1B2" * 9
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"


def redacted(text: str, **how) -> str:
    redactor = Redactor(**how)
    redactor.learn([text])
    return redactor.text(text, "here")


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (f"cloning with {GITHUB} now", GITHUB),
        (f"key {AWS}, region us-east-1", AWS),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
        ('{"api_key": "0123abcd4567"}', "0123abcd4567"),
        ("DB_PASSWORD=hunter2hunter2", "hunter2hunter2"),
        (f"Authorization: Bearer {JWT}", JWT),
        ("s3://minio:verysecret@127.0.0.1:9000/models", "verysecret"),
        ("GET https://bucket.example.com/a?X-Amz-Signature=deadbeef01&x=1", "deadbeef01"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nnext", "MIIE"),
        ('parameters { key: "hf_token" value { string_value: "my-own-secret" } }', "my-own-secret"),
        ("hf_abcdefghijklmnopqrstuvwxyz0123", "abcdefghijklmnop"),
        ("model at /home/alice/secret-project/models/ident", "alice"),
        ("model at /home/alice/secret-project/models/ident", "secret-project"),
        ("see /home/alice/acme", "acme"),
        ("C:\\Users\\bob\\models\\x", "bob"),
        ("see ~carol/models", "carol"),
        ("--model-repository=/mnt/customer-acme/repo/ident", "customer-acme"),
        ("peer 10.1.2.3 closed", "10.1.2.3"),
        ("connect to 192.168.7.20:8001", "192.168.7.20"),
        ("from 3.120.44.7", "3.120.44.7"),
        ("address 2001:db8:85a3::8a2e:370:7334 refused", "2001:db8"),
        ("fe80::1ff:fe23:4567:890a%eth0", "fe80"),
        ("ether 02:42:ac:11:00:02", "02:42:ac"),
        ("mail dora.smith+triton@mail.acme.co.uk please", "dora.smith"),
        ("HOSTNAME=gpu-box-17", "gpu-box-17"),
        ("http://gpu-box-17:8000/v2", "gpu-box-17"),
        ("resolved db.prod.acme.internal", "acme"),
        ("USER=edward", "edward"),
        ("mounted at '/srv/customers/bigbank' today", "bigbank"),
        ("s3://bucket-of-acme/fraud-models/v3/model.onnx", "fraud-models"),
        ("http://10.20.30.40:9000/fraud-models", "fraud-models"),
        ("AccountName=acmestore;EndpointSuffix=core", "acmestore"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJpublickeypart x", "publickeypart"),
        ("uid=1000(edward) gid=1000(edward)", "edward"),
    ],
)
def test_is_taken_out(text: str, gone: str) -> None:
    assert gone not in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "server is live at http://127.0.0.1:39255 (pid 2034)",
        "Started HTTPService at 0.0.0.0:8000",
        "grpc at [::1]:8001",
        "Triton 2.51.0.1",
        "2.51.0.1",
        '"tensorrt_version": "10.13.3.9"',
        "| tensorrt_version | 10.13.3.9 |",
        "libnvinfer.so.10.13.3.9 loaded",
        "driver 580.159.04, CUDA 13.0.1.2",
        "tensorrt==10.13.3.9",
        "I1201 01:12:46.745284 27203 cuda_memory_manager.cc:117]",
        "max_tokens: 512, tokenizer: bpe",
        "secret_count: 12",
        "unexpected datatype TYPE_FP32 for inference output 'OUTPUT', expecting TYPE_INT32 for ident_0_0",
        "/opt/tritonserver/backends/tensorrt/libtriton_tensorrt.so",
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/v2/repository/models/ident/load",
        "/dev/shm/tc_1234_x and /proc/self/smaps_rollup",
        "https://github.com/triton-inference-server/server/issues/8969",
        "nvcr.io/nvidia/tritonserver:26.07-py3@sha256:551599c0812bb706121410a71abda07f9920d25e6c66edf1ec07a375e49f5f90",
        "std::vector<abc::def> in model.plan at http_server.cc:241, config.pbtxt, model.py",
        'dims: [16777216]  data_type: TYPE_FP32 key: "max_batch_size"',
        "http://127.0.0.1:8000/v2/models/ident/infer and http://localhost/metrics",
        "GPU-5e3f0c2a-1111-2222-3333-444455556666",
    ],
)
def test_stays_as_it_is(text: str) -> None:
    assert redacted(text) == text


def test_an_ordinary_address_with_a_version_before_it_is_taken_out_all_the_same() -> None:
    assert redacted("tritonserver version 2.51.0 answered from 172.17.0.2:8000").count("<ip>") == 1


def test_a_user_and_a_host_learnt_in_one_text_are_taken_out_of_others() -> None:
    redactor = Redactor()
    redactor.learn(["/home/alice/x", "http://gpu-box-17:8000"])
    assert redactor.text("alice logged in on gpu-box-17; malice stays", "log") == (
        "<user> logged in on <host>; malice stays"
    )


def test_a_value_of_the_environment_is_taken_out_wherever_it_stands() -> None:
    text = redacted("loading with s3cr3t-value, level 1", values={"S3_KEY": "s3cr3t-value", "LEVEL": "1"})
    assert text == "loading with <value of S3_KEY>, level 1"


def test_a_known_version_is_no_address() -> None:
    assert redacted("10.13.3.9 and 10.13.3.8", versions=frozenset({"10.13.3.9"})) == "10.13.3.9 and <ip>"


def test_of_a_path_a_file_and_a_known_name_stay() -> None:
    text = redacted(
        "/mnt/a/b/model.plan /mnt/a/ident /mnt/a/ident/1 /mnt/a/b /mnt/a/tritonserver", names=frozenset({"ident"})
    )
    assert text == "<path>/model.plan <path>/ident <path>/1 <path> <path>/tritonserver"


def test_what_lies_in_a_bucket_keeps_its_files_name_only() -> None:
    assert redacted("s3://acme-models/fraud/v3/m.onnx") == "s3://<host>/<path>/m.onnx"


def test_redacting_twice_changes_nothing_more() -> None:
    text = f"/home/alice/m {AWS} 10.0.0.1 http://box:80/x/y.bin s3://acme/fraud/v3 a@b.de DB_PASSWORD=hunter2hunter2"
    once = redacted(text)
    assert redacted(once) == once


def test_the_list_says_what_and_where_but_never_the_text() -> None:
    redactor = Redactor()
    redactor.text(f"{GITHUB} {GITHUB}", "server.log")
    redactor.text("10.0.0.1", "ISSUE.md")
    told = [(taken.kind, taken.where, taken.count) for taken in redactor.taken]
    assert told == [("IP or MAC address", "ISSUE.md", 1), ("token", "server.log", 2)]


def test_plain_values_are_redacted_deep_inside() -> None:
    redactor = Redactor()
    assert redactor.plain({"a": ["/home/alice/x/y.py", 3, None]}, "here") == {"a": ["<home>/y.py", 3, None]}


HUGE = (
    *("a_", "aB3+", "a.", "/a", "a@", "ab:", "~a", "1.2.3.", "sk-a-", "key: 'x_token' ", "-----BEGIN PRIVATE KEY-----"),
    *("http://", "Bearer ", "token=", "/home/", "a-b.", "::1", "10.0.0."),
)


@pytest.mark.parametrize("piece", HUGE)
def test_a_huge_line_takes_time_in_proportion_to_its_length(piece: str) -> None:
    """A pattern that went back over it again and again would need hours."""
    assert len(redacted(piece * 20_000)) > 0
