//! The Date of responses that came without one (RFC 9110 6.6.1), formatted once a second and worker.

use std::cell::Cell;
use std::time::{Duration, UNIX_EPOCH};

use larder_http::time::Clock;

/// An IMF-fixdate, always 29 bytes.
pub(crate) type Text = [u8; 29];

thread_local! {
    static LAST: Cell<(u64, Text)> = const { Cell::new((u64::MAX, [b' '; 29])) };
}

/// The current date.
pub(crate) fn text(clock: &Clock) -> Text {
    let seconds = clock.now().wall.secs();
    let (last, text) = LAST.get();
    if last == seconds {
        return text;
    }
    let written = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
    let mut text = [b' '; 29];
    text.iter_mut().zip(written.bytes()).for_each(|(to, from)| *to = from);
    LAST.set((seconds, text));
    text
}
