"""Classes of failures."""

import pyarrow as pa
import pytest
from loadstone.analysis.error_causes import BY_NAME
from loadstone.tables.requests import error_class, error_classes


@pytest.mark.parametrize(
    ("code", "error", "expected"),
    [
        (200, "", None),
        (204, "", None),
        (302, "", None),
        (399, "", None),
        (400, "400 Bad Request", "http_4xx"),
        (404, "404 Not Found", "http_4xx"),
        (500, "500 Internal Server Error", "http_5xx"),
        (503, "503 Service Unavailable", "http_503"),
        (504, "", "http_5xx"),
        (101, "", "http_other"),
        (600, "", "http_other"),
        (0, 'Get "http://h/": dial tcp 127.0.0.1:1: connect: connection refused', "refused"),
        (0, 'Get "http://h/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)', "timeout"),
        (0, "net/http: request canceled (Client.Timeout or context cancellation while reading body)", "timeout"),
        (0, 'Get "https://h/": net/http: TLS handshake timeout', "timeout"),
        (0, "read tcp 127.0.0.1:4->127.0.0.1:1: read: connection reset by peer", "reset"),
        (0, 'Get "http://h/": EOF', "reset"),
        (0, "write tcp 1.2.3.4:5: write: broken pipe", "reset"),
        (0, "dial tcp: lookup nowhere.example: no such host", "dns"),
        (0, "dial tcp: lookup slow.example on 10.0.0.1:53: read udp: i/o timeout", "dns"),
        (0, "tls: failed to verify certificate: x509: certificate signed by unknown authority", "tls"),
        (0, "dial tcp 127.0.0.1:80: socket: too many open files", "client_limit"),
        (0, "dial tcp 127.0.0.1:80: connect: cannot assign requested address", "client_limit"),
        (0, "something new", "no_response"),
        (0, "", "no_response"),
        (4, "", "timeout"),
        (14, "gRPC status 14 UNAVAILABLE", "grpc"),
        (16, "", "grpc"),
        (17, "", "http_other"),
    ],
)
def test_the_class_of_a_response(code, error, expected):
    assert error_class(code, error) == expected


@pytest.mark.parametrize(
    ("code", "answered_by", "expected"),
    [
        (503, "proxy", "http_503_by_proxy"),
        (503, "service", "http_503_by_service"),
        (503, None, "http_503"),
        (504, "proxy", "http_5xx_by_proxy"),
        (500, "service", "http_5xx_by_service"),
        (403, "proxy", "http_4xx_by_proxy"),
        (403, "service", "http_4xx"),
        (200, "service", None),
        (0, "proxy", "no_response"),
        (600, "proxy", "http_other"),
    ],
)
def test_a_proxys_own_answer_is_a_class_of_its_own(code, answered_by, expected):
    assert error_class(code, "", answered_by) == expected
    if code >= 400 and expected != "http_other":
        assert expected in BY_NAME, "a cause has the same name"


def test_columns():
    codes, errors = pa.array([200, 0, 503], pa.int32()), pa.array(["", "EOF", "x"])
    by = pa.array([None, None, "proxy"])
    assert error_classes(codes, errors, by).to_pylist() == [None, "reset", "http_503_by_proxy"]
    assert error_classes(codes[:1], errors[:1], by[:1]).to_pylist() == [None]
    assert error_classes(codes[:0], errors[:0], by[:0]).type == pa.string()
