//! What Content-Type says about the way content arrives (RFC 9110 8.3): some content is a stream that may be silent for long.

use http::{HeaderMap, header};

/// Whether the content is a stream of messages that may pause for as long as there is nothing to say: server-sent events, and
/// calls of gRPC in either direction.
pub fn is_stream(fields: &HeaderMap) -> bool {
    media_type(fields).is_some_and(|of| is_of_grpc(of) || of.eq_ignore_ascii_case(b"text/event-stream"))
}

/// Whether it is a call of gRPC, gRPC-Web included: `application/grpc`, alone or followed by `+`, `-` or parameters.
pub fn is_grpc(fields: &HeaderMap) -> bool {
    media_type(fields).is_some_and(is_of_grpc)
}

fn is_of_grpc(media_type: &[u8]) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    let start = media_type.get(..GRPC.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(GRPC))
        && matches!(media_type.get(GRPC.len()), None | Some(b'+' | b'-'))
}

/// Type and subtype, without parameters.
fn media_type(fields: &HeaderMap) -> Option<&[u8]> {
    let value = fields.get(header::CONTENT_TYPE)?;
    Some(value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn streams_are_known_by_their_media_type() {
        for (value, stream, grpc) in [
            ("text/event-stream", true, false),
            ("Text/Event-Stream; charset=utf-8", true, false),
            ("application/grpc", true, true),
            ("application/grpc+proto", true, true),
            ("application/grpc; x=y", true, true),
            ("application/grpc-web-text", true, true),
            ("application/grpcx", false, false),
            ("text/html", false, false),
            ("", false, false),
        ] {
            let fields = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(value))]);
            assert_eq!((is_stream(&fields), is_grpc(&fields)), (stream, grpc), "{value}");
        }
        assert!(!is_stream(&HeaderMap::new()));
    }
}
