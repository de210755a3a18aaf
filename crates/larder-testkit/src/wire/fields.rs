//! Field lines in their order, and bytes as text of the same characters.

use crate::Error;

/// Field lines in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(pub Vec<(String, String)>);

impl Fields {
    /// All values of `name`, one per line.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// The value of the first line called `name`.
    pub fn first<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// Whether there is a line called `name`.
    pub fn has(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    /// Whether any member of the comma-separated lists called `name` is `token`, without regard to case.
    pub fn lists(&self, name: &str, token: &str) -> bool {
        self.all(name)
            .flat_map(|line| line.split(','))
            .any(|member| member.trim().eq_ignore_ascii_case(token))
    }

    /// Reads the lines of a head after its first one, or a trailer section, without the empty line at the end.
    ///
    /// # Errors
    /// [`Error::Malformed`] for anything that RFC 9112 section 5 does not allow.
    pub fn parse(block: &[u8]) -> Result<Self, Error> {
        let mut fields = Vec::new();
        let mut rest = block;
        while !rest.is_empty() {
            let end = find(rest, b"\r\n").ok_or_else(|| Error::malformed("field line", rest))?;
            let line = rest.get(..end).unwrap_or_default();
            rest = rest.get(end + 2..).unwrap_or_default();
            let colon =
                line.iter().position(|&b| b == b':').ok_or_else(|| Error::malformed("field line", line))?;
            let (name, value) = line.split_at(colon);
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            if name.is_empty() || !name.iter().copied().all(is_token) {
                return Err(Error::malformed("field name", line));
            }
            if value.iter().any(|&b| b == 0x7f || (b < 0x20 && b != b'\t')) {
                return Err(Error::malformed("field value", line));
            }
            fields.push((latin1(name), latin1(value)));
        }
        Ok(Self(fields))
    }
}

/// Each byte as the character of that number.
pub fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The inverse of [`latin1`]; characters above 255 are written as UTF-8.
pub fn to_bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for c in text.chars() {
        match u8::try_from(u32::from(c)) {
            Ok(byte) => out.push(byte),
            Err(_) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out
}

/// Whether `byte` may stand in a token (RFC 9110 5.6.2).
pub fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The position of `needle` in `bytes`.
pub fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}
