//! A response message that is a value in memcached: its body is what follows the head, and no field is more than one.

use bytes::Bytes;
use larder_http::message::write_http1_fields;
use larder_values::fuzzing::read_message;

/// Reads `input` as a value.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let Some((status, fields, body)) = read_message(&Bytes::copy_from_slice(input)) else { return };
    assert!((200..1000).contains(&status.as_u16()), "{status} is not final");
    assert!(input.ends_with(&body), "the body is not what follows");
    for (name, value) in &fields {
        let ends_a_line = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
        assert!(!value.as_bytes().iter().any(ends_a_line), "{name}: {value:?}");
        assert!(!matches!(name.as_str(), "connection" | "transfer-encoding" | "content-length" | "upgrade"));
    }
    let mut written = format!("HTTP/1.1 {}\r\n", status.as_u16()).into_bytes();
    write_http1_fields(&fields, &mut written);
    written.extend_from_slice(b"\r\n");
    written.extend_from_slice(&body);
    assert_eq!(read_message(&written.into()), Some((status, fields, body)), "written again it is another");
}
