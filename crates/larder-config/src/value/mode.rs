//! Who may read and write a file: octal digits, as `chmod` takes them.
//!
//! Only what makes sense for a stored response: its owner, who is larder, reads and writes it; others read it, or write it
//! as well if they are in its group. A file that anybody may write would let anybody change what is served.

use std::fmt;

use crate::schema::{Text, TextSetting};

/// The permission bits of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMode(u32);

impl FileMode {
    /// The nine bits, as `chmod` takes them.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl fmt::Display for FileMode {
    /// As it is written in the config.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl TextSetting for FileMode {
    const TEXT: Text = Text {
        noun: "a file's mode",
        examples: r#""0644", "0640", "0600""#,
        about: "Octal digits, as `chmod` takes them: the owner reads and writes, the group does both, reads or neither, \
                others read or not.",
        pattern: Some("^06[046][04]$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let is_octal = |text: &str| text.len() == 3 && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let digits = match text.strip_prefix('0') {
            Some(digits) if is_octal(digits) => digits,
            _ if is_octal(text) => return Err(Some(format!("did you mean \"0{text}\"?"))),
            _ => return Err(None),
        };
        let refuse = |hint: &str| Err(Some(hint.to_owned()));
        match digits.as_bytes() {
            [b'6', b'0' | b'4' | b'6', b'0' | b'4'] => {
                u32::from_str_radix(digits, 8).map(Self).map_err(|_| None)
            }
            [b'6', _, b'2' | b'3' | b'6' | b'7'] => refuse("anybody could change what is served"),
            [b'1' | b'3' | b'5' | b'7', ..] | [_, b'1' | b'3' | b'5' | b'7', _] | [.., b'1' | b'5'] => {
                refuse("a response is no program: nobody executes it")
            }
            [b'6', ..] => refuse("who may write a file may read it"),
            _ => refuse("larder itself reads and writes the files: the first digit is 6"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_one_that_a_stored_response_can_have() {
        let executes = Some("a response is no program: nobody executes it");
        for (text, expected) in [
            ("0644", Ok(0o644)),
            ("0600", Ok(0o600)),
            ("0640", Ok(0o640)),
            ("0660", Ok(0o660)),
            ("0664", Ok(0o664)),
            ("644", Err(Some("did you mean \"0644\"?"))),
            ("0666", Err(Some("anybody could change what is served"))),
            ("0647", Err(Some("anybody could change what is served"))),
            ("0755", Err(executes)),
            ("0645", Err(executes)),
            ("0654", Err(executes)),
            ("0624", Err(Some("who may write a file may read it"))),
            ("0444", Err(Some("larder itself reads and writes the files: the first digit is 6"))),
            ("0000", Err(Some("larder itself reads and writes the files: the first digit is 6"))),
            ("0648", Err(None)),
            ("04644", Err(None)),
            ("rw-r--r--", Err(None)),
            ("", Err(None)),
        ] {
            let read = FileMode::from_text(text).map(FileMode::bits);
            assert_eq!(read, expected.map_err(|hint: Option<&str>| hint.map(str::to_owned)), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_read_prints_and_reads_back(text in "\\PC{0,5}|[0-7]{3,4}|0[4-7]{3}") {
            if let Ok(mode) = FileMode::from_text(&text) {
                proptest::prop_assert_eq!(mode.to_string(), text.clone());
                proptest::prop_assert_eq!(FileMode::from_text(&text), Ok(mode));
            }
        }
    }
}
