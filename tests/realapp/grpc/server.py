"""A gRPC server without generated code: messages are plain bytes. Prints a line for each call that its client gave up."""

import sys
import threading
import time
from concurrent import futures

import grpc


def say(*words):
    print(*words, flush=True)


def watch(name, context):
    """Notes how a call ended that was not over when it was cancelled."""
    context.add_callback(lambda: say("ended", name))


def unary(request, context):
    left = context.time_remaining()
    context.send_initial_metadata((("x-initial", "1"), ("x-has-deadline", str(left is not None and 20 < left < 40))))
    context.set_trailing_metadata((("x-trailing", "2"), ("x-binary-bin", b"\x00\xff")))
    return b"echo:" + request


def large(request, context):
    return request * 64


def fails(request, context):
    context.set_trailing_metadata((("x-why", "because"),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now: 100% busy, später")


def slow(request, context):
    """Ends only when it is given up by its client."""
    gone = threading.Event()
    context.add_callback(gone.set)
    watch("slow", context)
    gone.wait(30)
    return b"late"


def server_stream(request, context):
    for number in range(int(request)):
        yield b"%d" % number


def endless(request, context):
    watch("endless", context)
    number = 0
    while context.is_active():
        yield b"%d" % number
        number += 1
        time.sleep(0.01)


def quiet(request, context):
    """Says something, is silent for as long as it is asked to be, and says something again."""
    yield b"first"
    time.sleep(float(request))
    yield b"second"


def late(request, context):
    """Sends nothing at all, not even a head, for as long as it is asked."""
    time.sleep(float(request))
    yield b"at last"


def client_stream(requests, context):
    return b"%d" % sum(len(request) for request in requests)


def both(requests, context):
    for request in requests:
        if request == b"stop":
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "stopped")
        yield b"echo:" + request


class Service(grpc.GenericRpcHandler):
    def service(self, details):
        handlers = {
            "Unary": grpc.unary_unary_rpc_method_handler(unary),
            "Large": grpc.unary_unary_rpc_method_handler(large),
            "Fails": grpc.unary_unary_rpc_method_handler(fails),
            "Slow": grpc.unary_unary_rpc_method_handler(slow),
            "ServerStream": grpc.unary_stream_rpc_method_handler(server_stream),
            "Endless": grpc.unary_stream_rpc_method_handler(endless),
            "Quiet": grpc.unary_stream_rpc_method_handler(quiet),
            "Late": grpc.unary_stream_rpc_method_handler(late),
            "ClientStream": grpc.stream_unary_rpc_method_handler(client_stream),
            "Both": grpc.stream_stream_rpc_method_handler(both),
        }
        return handlers.get(details.method.rsplit("/", 1)[-1])


def main():
    address = sys.argv[1]
    options = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 64 << 20)]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=32), options=options)
    server.add_generic_rpc_handlers((Service(),))
    server.add_insecure_port(address)
    server.start()
    say("ready")
    server.wait_for_termination()


main()
