"""Calls of every kind, to the address that is named. Prints what came of each; the check compares the lines of a run
through larder with those of a run without it."""

import sys
import threading
import time

import grpc

# Far above any real wait: what fails should say so, not hang.
PATIENCE = 30


def metadata(pairs):
    """The pairs that the application wrote; proxies add fields of their own."""
    return sorted((key, value) for key, value in pairs if key.startswith("x-"))


def say(name, *words):
    print(name + ":", *words, flush=True)


def failed(name, call):
    try:
        call()
        say(name, "no error")
    except grpc.RpcError as error:
        trailing = metadata(error.trailing_metadata() or ()) if hasattr(error, "trailing_metadata") else []
        say(name, error.code().name, repr(error.details()), trailing)


def main():
    options = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20)]
    channel = grpc.insecure_channel(sys.argv[1], options=options)
    quiet_seconds = sys.argv[2]
    grpc.channel_ready_future(channel).result(timeout=PATIENCE)
    unary = lambda name: channel.unary_unary("/test.Test/" + name)

    reply, call = unary("Unary").with_call(b"hello", timeout=PATIENCE, metadata=(("x-mine", "1"),))
    say("unary", reply, metadata(call.initial_metadata()), metadata(call.trailing_metadata()), call.code().name)
    say("empty", unary("Unary")(b"", timeout=PATIENCE))
    reply = unary("Large")(b"x" * 262144, timeout=PATIENCE)
    say("large", len(reply), reply == b"x" * 262144 * 64)

    failed("error", lambda: unary("Fails")(b"", timeout=PATIENCE))
    failed("unimplemented", lambda: unary("Nothing")(b"", timeout=PATIENCE))
    failed("deadline", lambda: unary("Slow")(b"", timeout=0.3))

    call = unary("Slow").future(b"", timeout=PATIENCE)
    time.sleep(0.2)
    call.cancel()
    failed("cancelled", call.result) if not call.cancelled() else say("cancelled", call.code().name)

    stream = channel.unary_stream("/test.Test/ServerStream")
    say("server stream", [int(item) for item in stream(b"1000", timeout=PATIENCE)] == list(range(1000)))
    say("server stream, none", list(stream(b"0", timeout=PATIENCE)))

    endless = channel.unary_stream("/test.Test/Endless")(b"", timeout=PATIENCE)
    first = [next(endless) for _ in range(3)]
    endless.cancel()
    say("endless, cancelled", first, endless.code().name)

    many = (b"x" * (number % 5000) for number in range(2000))
    say("client stream", channel.stream_unary("/test.Test/ClientStream")(many, timeout=PATIENCE))

    # Each message is sent only after the answer to the one before has come.
    answered = threading.Semaphore(1)

    def questions():
        for number in range(50):
            answered.acquire(timeout=PATIENCE)
            yield b"%d" % number

    both = channel.stream_stream("/test.Test/Both")
    answers = []
    for answer in both(questions(), timeout=PATIENCE):
        answers.append(answer)
        answered.release()
    say("both directions", answers == [b"echo:%d" % number for number in range(50)])
    failed("both directions, error", lambda: list(both(iter([b"a", b"stop", b"b"]), timeout=PATIENCE)))

    say("quiet", list(channel.unary_stream("/test.Test/Quiet")(quiet_seconds.encode(), timeout=600)))
    say("late", list(channel.unary_stream("/test.Test/Late")(quiet_seconds.encode(), timeout=600)))

    def pauses():
        yield b"one"
        time.sleep(float(quiet_seconds))
        yield b"two"

    say("paused client", list(both(pauses(), timeout=600)))

    # Many at once on one connection.
    calls = [unary("Unary").future(b"%d" % number, timeout=PATIENCE) for number in range(200)]
    say("many", all(call.result() == b"echo:%d" % number for number, call in enumerate(calls)))
    say("done")


main()
