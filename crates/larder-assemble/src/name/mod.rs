//! Variables by their names, one file for each language.
//!
//! In: a name as a template writes it. Out: what it stands for, decided when the template is compiled. Deliberately
//! absent: values.

pub(crate) mod esi;
mod field;
pub(crate) mod ssi;

/// A variable of either language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// Of SSI.
    Ssi(ssi::SsiName),
    /// Of ESI.
    Esi(esi::EsiName),
}
