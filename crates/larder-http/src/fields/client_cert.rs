//! Client-Cert: which certificate a client has shown where TLS ended (RFC 9440 2.2).

use http::{HeaderName, HeaderValue};

/// The certificate of the client itself.
pub const CLIENT_CERT: HeaderName = HeaderName::from_static("client-cert");

/// Its value for a certificate in DER: a byte sequence (RFC 9651 3.3.5).
pub fn value(certificate: &[u8]) -> Option<HeaderValue> {
    HeaderValue::try_from(sfv::ItemSerializer::new().bare_item(certificate).finish()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_a_byte_sequence() {
        assert_eq!(
            value(b"\x30\x03\x02\x01\x05").as_ref().map(HeaderValue::as_bytes),
            Some(&b":MAMCAQU=:"[..])
        );
        assert_eq!(value(b"").as_ref().map(HeaderValue::as_bytes), Some(&b"::"[..]));
    }
}
