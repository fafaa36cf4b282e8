"""A gRPC server as a target: `python grpc_server.py FILE DELAY_S FAILS`.

It has one method, echo.Echo/Say, takes DELAY_S for each call and fails every FAILS-th (0: none). Writes its port, then
a line per call with the seconds that it took, to FILE.
"""

import sys
import threading
import time
from concurrent import futures
from pathlib import Path

import grpc


def main() -> None:
    file, delay_s, fails = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    lock, calls = threading.Lock(), 0

    def say(text: bytes, context: grpc.ServicerContext) -> bytes:
        nonlocal calls
        started = time.perf_counter()
        time.sleep(delay_s)
        with lock, file.open("a") as took:
            calls += 1
            number = calls
            took.write(f"{time.perf_counter() - started}\n")
        if fails and number % fails == 0:
            context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        return text

    handler = grpc.method_handlers_generic_handler("echo.Echo", {"Say": grpc.unary_unary_rpc_method_handler(say)})
    server = grpc.server(futures.ThreadPoolExecutor(50))
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    file.write_text(f"{port}\n")
    server.wait_for_termination()


if __name__ == "__main__":
    main()
