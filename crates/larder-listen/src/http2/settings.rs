//! SETTINGS in both directions (RFC 9113 6.5, RFC 9218 2.1).
//!
//! In: the limits of the config, and payloads of the client. Out: what larder announces, and what the client has announced, checked.

use super::flow::{CONNECTION_WINDOW, STREAM_WINDOW, WINDOW_DEFAULT, WINDOW_MAX};
use super::frame::{self, ErrorCode, PAYLOAD_MAX, SETTINGS, WINDOW_UPDATE};
use crate::settings::Limits;

const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
const MAX_HEADER_LIST_SIZE: u16 = 6;
const NO_RFC7540_PRIORITIES: u16 = 9;
/// Octets of one setting.
const SETTING_BYTES: usize = 6;

/// What a client has announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientSettings {
    /// What a new stream may be sent.
    pub(super) initial_window: u32,
    /// The longest payload of a frame.
    pub(super) payload_max: usize,
    /// The table that it keeps for fields, where it has said so.
    pub(super) table_bytes: Option<u32>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self { initial_window: WINDOW_DEFAULT, payload_max: PAYLOAD_MAX, table_bytes: None }
    }
}

impl ClientSettings {
    /// Takes over a payload.
    ///
    /// # Errors
    /// A value that is not allowed, or half a setting.
    pub(super) fn apply(&mut self, payload: &[u8]) -> Result<(), ErrorCode> {
        if !payload.len().is_multiple_of(SETTING_BYTES) {
            return Err(ErrorCode::FrameSize);
        }
        for setting in payload.chunks_exact(SETTING_BYTES) {
            let &[a, b, c, d, e, f] = setting else { continue };
            let (name, value) = (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]));
            match name {
                HEADER_TABLE_SIZE => self.table_bytes = Some(value),
                ENABLE_PUSH if value > 1 => return Err(ErrorCode::Protocol),
                INITIAL_WINDOW_SIZE if value > WINDOW_MAX => return Err(ErrorCode::FlowControl),
                INITIAL_WINDOW_SIZE => self.initial_window = value,
                MAX_FRAME_SIZE => {
                    let bytes = usize::try_from(value).unwrap_or(usize::MAX);
                    if !(PAYLOAD_MAX..1 << 24).contains(&bytes) {
                        return Err(ErrorCode::Protocol);
                    }
                    self.payload_max = bytes;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Writes what larder says first.
pub(super) fn write_own(out: &mut Vec<u8>, limits: &Limits) {
    let head_bytes = u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX);
    let mut payload = Vec::with_capacity(4 * SETTING_BYTES);
    for (name, value) in [
        (MAX_CONCURRENT_STREAMS, limits.streams_max),
        (INITIAL_WINDOW_SIZE, STREAM_WINDOW),
        (MAX_HEADER_LIST_SIZE, head_bytes),
        (NO_RFC7540_PRIORITIES, 1),
    ] {
        payload.extend_from_slice(&name.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame::write(out, (SETTINGS, 0, 0), &payload);
    frame::write(out, (WINDOW_UPDATE, 0, 0), &(CONNECTION_WINDOW - WINDOW_DEFAULT).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(settings: &[(u16, u32)]) -> Vec<u8> {
        settings.iter().flat_map(|(n, v)| [&n.to_be_bytes()[..], &v.to_be_bytes()].concat()).collect()
    }

    #[test]
    fn what_is_allowed_is_taken_over_and_the_last_word_counts() {
        let mut settings = ClientSettings::default();
        let said = payload(&[(1, 0), (2, 1), (4, 7), (5, 20_000), (4, 9), (0xabcd, 1)]);
        assert_eq!(settings.apply(&said), Ok(()));
        let taken = ClientSettings { initial_window: 9, payload_max: 20_000, table_bytes: Some(0) };
        assert_eq!(settings, taken);
    }

    #[test]
    fn what_is_not_allowed_has_its_code() {
        for (name, value, code) in [
            (2, 2, ErrorCode::Protocol),
            (4, WINDOW_MAX + 1, ErrorCode::FlowControl),
            (5, 16_383, ErrorCode::Protocol),
            (5, 1 << 24, ErrorCode::Protocol),
        ] {
            assert_eq!(ClientSettings::default().apply(&payload(&[(name, value)])), Err(code), "{name}");
        }
        assert_eq!(ClientSettings::default().apply(&[0; 5]), Err(ErrorCode::FrameSize));
    }
}
