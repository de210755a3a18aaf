//! The formats of a line.

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line, with names after OpenTelemetry's.
    #[default]
    Json,
    /// The combined format of Apache and nginx, with nginx's escapes.
    Combined,
}
