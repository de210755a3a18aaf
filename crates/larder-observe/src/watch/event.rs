//! What happened to larder itself: a reload, a purge, a server that is left out.

use larder_http::time::WallTime;

/// So many bytes of a subject are kept.
const SUBJECT_BYTES_MAX: usize = 256;
/// So many bytes of a text are kept.
const TEXT_BYTES_MAX: usize = 1024;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: WallTime,
    /// What kind of thing it is, such as `reload`.
    pub kind: &'static str,
    /// What it happened to, such as a store's name; cut at 256 bytes.
    pub subject: String,
    /// One sentence, cut at 1024 bytes.
    pub text: String,
}

impl Event {
    /// The same with texts that are short enough to be kept.
    pub(super) fn cut(mut self) -> Self {
        let cut = |text: &mut String, bytes_max: usize| {
            text.truncate(text.floor_char_boundary(bytes_max));
            text.shrink_to_fit();
        };
        cut(&mut self.subject, SUBJECT_BYTES_MAX);
        cut(&mut self.text, TEXT_BYTES_MAX);
        self
    }

    /// So much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.subject.len() + self.text.len()
    }
}
