//! With what a stored response can be validated (RFC 9110 8.8).

use http::{HeaderMap, HeaderValue, StatusCode, header};
use larder_http::fields::date::DateField;
use larder_http::fields::etag::EntityTag;
use larder_http::time::WallTime;

/// What a stored response can be validated with; nothing where its status is not 200, 203 or 206, which alone a 304 can
/// confirm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// Its entity tag as it came, odd ones included.
    pub etag: Option<HeaderValue>,
    /// Last-Modified as it came, and the instant it names.
    pub last_modified: Option<(HeaderValue, WallTime)>,
}

impl Validators {
    /// Reads them. `now` serves to read two-digit years only.
    pub(crate) fn of(status: StatusCode, fields: &HeaderMap, now: WallTime) -> Self {
        if !can_be_confirmed(status) {
            return Self::default();
        }
        let etag = EntityTag::of(fields).and_then(|_| fields.get(header::ETAG).cloned());
        let modified = DateField::read(fields, &header::LAST_MODIFIED, now).at();
        Self { etag, last_modified: fields.get(header::LAST_MODIFIED).cloned().zip(modified) }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// Whether a 304 can confirm a response with `status`. It stands for a 200 (RFC 9110 15.4.5), of which 203 is a version
/// changed on the way and 206 a part. A stored 404 whose page exists by now would live on by a date that is older.
pub(crate) const fn can_be_confirmed(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 203 | 206)
}
