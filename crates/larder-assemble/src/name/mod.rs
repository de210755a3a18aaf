//! Variables by their names, one file for each language.
//!
//! In: a name as a template writes it. Out: what it stands for, decided when the template is compiled. Deliberately
//! absent: values.

pub(crate) mod esi;
pub(crate) mod ssi;

use http::HeaderName;

/// A variable of either language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// Of SSI.
    Ssi(ssi::Name),
    /// Of ESI.
    Esi(esi::Name),
}

/// The field that `ACCEPT_LANGUAGE` in `HTTP_ACCEPT_LANGUAGE` stands for, in any letter case.
fn field(name: &[u8]) -> Option<HeaderName> {
    let name: Vec<u8> = name.iter().map(|byte| if *byte == b'_' { b'-' } else { *byte }).collect();
    HeaderName::from_bytes(&name).ok()
}
