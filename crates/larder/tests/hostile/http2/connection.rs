//! Frames that do not belong where they stand, or say what they may not (RFC 9113 4 to 6).

use crate::hostile::http2::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, GOAWAY, HEADERS,
    PADDED, PING, PRIORITY, PRIORITY_FLAG, PROTOCOL_ERROR, PUSH_PROMISE, RST_STREAM, SETTINGS, STREAM, WHOLE,
    WINDOW_UPDATE, data, frame, get, headers, headers_on, lying_frame, post, request, reset, setting,
    window_update,
};
use crate::hostile::http2::judge::Case;

pub fn cases() -> Vec<Case> {
    let mut cases = misplaced();
    cases.extend(misshapen());
    cases.extend(windows_and_settings());
    cases.extend(harmless());
    cases
}

fn misplaced() -> Vec<Case> {
    let head = request("GET", "/", &[]);
    let goaway = |name: &str, frames: &[Vec<u8>]| Case::goaway(name, PROTOCOL_ERROR, frames.concat());
    vec![
        goaway("HEADERS on stream 0", &[headers_on(0, WHOLE, &head)]),
        goaway("HEADERS on an even stream", &[headers_on(2, WHOLE, &head)]),
        goaway("DATA on stream 0", &[frame(DATA, END_STREAM, 0, b"x")]),
        goaway("DATA on a stream that was never opened", &[frame(DATA, END_STREAM, 5, b"x")]),
        goaway("RST_STREAM on stream 0", &[reset(0, 8)]),
        goaway("RST_STREAM on a stream that was never opened", &[reset(5, 8)]),
        goaway("WINDOW_UPDATE on a stream that was never opened", &[window_update(5, 1)]),
        goaway("CONTINUATION without HEADERS", &[frame(CONTINUATION, END_HEADERS, STREAM, &head)]),
        goaway(
            "CONTINUATION behind a whole head",
            &[post(&[], &[]), frame(CONTINUATION, END_HEADERS, STREAM, b"\0\x01x\x01y")],
        ),
        goaway(
            "CONTINUATION of another stream",
            &[frame(HEADERS, END_STREAM, STREAM, &head), frame(CONTINUATION, END_HEADERS, 3, b"")],
        ),
        goaway(
            "PING inside a head",
            &[frame(HEADERS, END_STREAM, STREAM, &head), frame(PING, 0, 0, &[0; 8])],
        ),
        goaway(
            "an unknown frame inside a head",
            &[frame(HEADERS, END_STREAM, STREAM, &head), frame(0xee, 0, 0, b"x")],
        ),
        goaway("DATA inside a head", &[frame(HEADERS, 0, STREAM, &head), data(END_STREAM, "x")]),
        goaway(
            "PUSH_PROMISE of a client",
            &[frame(PUSH_PROMISE, END_HEADERS, STREAM, &[&[0, 0, 0, 2], &head[..]].concat())],
        ),
        goaway("SETTINGS on a stream", &[frame(SETTINGS, 0, STREAM, b"")]),
        goaway(
            "a second acknowledgement of one SETTINGS",
            &[frame(SETTINGS, ACK, 0, b""), frame(SETTINGS, ACK, 0, b"")],
        ),
        goaway("PING on a stream", &[frame(PING, 0, STREAM, &[0; 8])]),
        goaway("GOAWAY on a stream", &[frame(GOAWAY, 0, STREAM, &[0; 8])]),
        goaway("PRIORITY on stream 0", &[frame(PRIORITY, 0, 0, &[0, 0, 0, 3, 1])]),
    ]
}

fn misshapen() -> Vec<Case> {
    let shaped = |name: &str, code: u32, frame: Vec<u8>| Case::goaway(name, code, frame);
    let self_dependent = |kind: u8, flags: u8, tail: &[u8]| {
        frame(kind, flags, STREAM, &[&STREAM.to_be_bytes()[..], &[1], tail].concat())
    };
    let padded = |kind: u8, payload: &[u8]| frame(kind, PADDED | WHOLE, STREAM, payload);
    vec![
        shaped("a frame larger than agreed", FRAME_SIZE_ERROR, lying_frame(16_385, DATA, 0, STREAM, b"")),
        shaped("a frame of 16 MB", FRAME_SIZE_ERROR, lying_frame(0xff_ffff, HEADERS, WHOLE, STREAM, b"")),
        shaped("SETTINGS of 5 bytes", FRAME_SIZE_ERROR, frame(SETTINGS, 0, 0, &[0; 5])),
        shaped(
            "an acknowledgement with settings",
            FRAME_SIZE_ERROR,
            frame(SETTINGS, ACK, 0, &[0, 1, 0, 0, 0, 0]),
        ),
        shaped("PING of 7 bytes", FRAME_SIZE_ERROR, frame(PING, 0, 0, &[0; 7])),
        shaped(
            "RST_STREAM of 3 bytes",
            FRAME_SIZE_ERROR,
            [post(&[], &[]), frame(RST_STREAM, 0, STREAM, &[0; 3])].concat(),
        ),
        shaped("WINDOW_UPDATE of 3 bytes", FRAME_SIZE_ERROR, frame(WINDOW_UPDATE, 0, 0, &[0; 3])),
        shaped("PRIORITY of 4 bytes", FRAME_SIZE_ERROR, frame(PRIORITY, 0, STREAM, &[0; 4])),
        shaped("GOAWAY of 7 bytes", FRAME_SIZE_ERROR, frame(GOAWAY, 0, 0, &[0; 7])),
        shaped("padding longer than its HEADERS", PROTOCOL_ERROR, padded(HEADERS, b"\xffabc")),
        shaped("HEADERS too short for its padding", FRAME_SIZE_ERROR, padded(HEADERS, b"")),
        shaped(
            "HEADERS too short for its priority",
            FRAME_SIZE_ERROR,
            frame(HEADERS, PRIORITY_FLAG | WHOLE, STREAM, &[0; 4]),
        ),
        shaped(
            "padding longer than its DATA",
            PROTOCOL_ERROR,
            [post(&[], &[]), padded(DATA, b"\xffabc")].concat(),
        ),
        Case::reset(
            "HEADERS that depend on themselves",
            PROTOCOL_ERROR,
            self_dependent(HEADERS, PRIORITY_FLAG | WHOLE, &request("GET", "/", &[])),
        ),
        Case::reset(
            "PRIORITY that depends on itself",
            PROTOCOL_ERROR,
            [post(&[], &[]), self_dependent(PRIORITY, 0, b"")].concat(),
        ),
    ]
}

fn windows_and_settings() -> Vec<Case> {
    const MOST: u32 = 0x7fff_ffff;
    vec![
        Case::goaway("a window of the connection opened by 0", PROTOCOL_ERROR, window_update(0, 0)),
        Case::goaway("a window of the connection beyond 2^31", FLOW_CONTROL_ERROR, window_update(0, MOST)),
        Case::reset(
            "a window of a stream beyond 2^31",
            FLOW_CONTROL_ERROR,
            [post(&[], &[]), window_update(STREAM, MOST)].concat(),
        ),
        Case::reset(
            "a window of a stream opened by 0",
            PROTOCOL_ERROR,
            [post(&[], &[]), window_update(STREAM, 0)].concat(),
        ),
        Case::goaway("ENABLE_PUSH of 2", PROTOCOL_ERROR, setting(2, 2)),
        Case::goaway("INITIAL_WINDOW_SIZE beyond 2^31", FLOW_CONTROL_ERROR, setting(4, MOST + 1)),
        Case::goaway("MAX_FRAME_SIZE of 1", PROTOCOL_ERROR, setting(5, 1)),
        Case::goaway("MAX_FRAME_SIZE of 16 MB", PROTOCOL_ERROR, setting(5, 1 << 24)),
        Case::goaway(
            "INITIAL_WINDOW_SIZE that lifts a stream beyond 2^31",
            FLOW_CONTROL_ERROR,
            [post(&[], &[]), window_update(STREAM, MOST - 65_535), setting(4, MOST)].concat(),
        ),
    ]
}

fn harmless() -> Vec<Case> {
    let served = |name: &str, frames: &[Vec<u8>]| Case::sent(name, "GET / HTTP/1.1", frames.concat());
    let head = request("GET", "/", &[]);
    let padded = |block: &[u8]| [&[3], block, &[0; 3]].concat();
    vec![
        served(
            "unknown frames are ignored",
            &[frame(0xee, 0xff, 0, b"x"), get("/", &[]), frame(0xef, 0, STREAM, b"")],
        ),
        served("unknown settings are ignored", &[setting(0xabcd, 7), get("/", &[])]),
        served("PRIORITY is ignored", &[frame(PRIORITY, 0, STREAM, &[0, 0, 0, 7, 255]), get("/", &[])]),
        served("padding goes no further", &[frame(HEADERS, PADDED | WHOLE, STREAM, &padded(&head))]),
        served(
            "the reserved bit of a stream's number is ignored",
            &[headers_on(STREAM | 1 << 31, WHOLE, &head)],
        ),
        served("a PING that answers nothing", &[frame(PING, ACK, 0, &[9; 8]), get("/", &[])]),
        Case::sent(
            "padded content",
            "POST / HTTP/1.1",
            [
                post(&[("content-length", "5")], &[]),
                frame(DATA, PADDED | END_STREAM, STREAM, b"\x03hello\0\0\0"),
            ]
            .concat(),
        )
        .content("hello"),
        Case::sent(
            "empty pieces of content",
            "POST / HTTP/1.1",
            [
                headers(END_HEADERS, &request("POST", "/", &[])),
                data(0, ""),
                data(0, "hello"),
                data(0, ""),
                data(END_STREAM, ""),
            ]
            .concat(),
        )
        .content("hello"),
    ]
}
