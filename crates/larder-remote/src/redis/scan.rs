//! The outlines of replies (RESP2, and of RESP3 what larder asks for), as far as their bounds go.
//!
//! In: bytes as they come, cut anywhere. Out: how many replies have ended with them; or that what comes is none that larder asked for.
//! The library that reads the replies collects whatever is announced: strings of any length, lines without an end, lists
//! within lists. Here they end before it sees them. For values larder asks for strings, numbers and lines alone; what scripts and
//! streams answer is lists of these, within their own bounds ([`Lists`]). Where a connection speaks RESP3, maps count as lists, and what
//! the server sends of its own accord ("push") is followed like a reply, and is none.
//! A line takes at most [`LINE_MAX`] bytes. A length is digits and nothing else.
//! Pure: no socket, no clock. Protocol: redis.io/docs/latest/develop/reference/protocol-spec.

use crate::error::Failure;

/// The longest line: a number, or the text of an error.
const LINE_MAX: usize = 4096;
/// The end of every line and string.
const LINE_END: &[u8] = b"\r\n";

/// What lists may be part of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lists {
    /// How many may lie within each other.
    pub(crate) nested: usize,
    /// Elements of all lists of a reply.
    pub(crate) elements: usize,
    /// Bytes of all strings of a reply.
    pub(crate) bytes: usize,
}

impl Lists {
    /// None at all.
    pub(crate) const NONE: Self = Self { nested: 0, elements: 0, bytes: usize::MAX };
}

/// Follows the replies of one connection.
#[derive(Debug)]
pub(crate) struct Scanner {
    state: State,
    value_max: usize,
    lists: Lists,
    /// How many elements are missing of each list that has begun, the outermost first.
    missing: Vec<usize>,
    /// What the reply that has begun may have still.
    left: Lists,
    resp: RespVersion,
    /// What has begun is no reply.
    is_push: bool,
}

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RespVersion {
    /// RESP2.
    Two,
    /// RESP3.
    Three,
}

#[derive(Debug)]
enum State {
    /// What has come of a line, its end included; empty between replies.
    Line(Vec<u8>),
    /// So many bytes of a string are missing.
    Body(usize),
    /// What of a string's end is missing.
    Ending(&'static [u8]),
}

impl Scanner {
    /// Lets strings of up to `value_max` bytes pass, and no list.
    pub(crate) fn new(value_max: usize) -> Self {
        Self::with_lists(value_max, Lists::NONE)
    }

    /// The same, and these lists.
    pub(crate) fn with_lists(value_max: usize, lists: Lists) -> Self {
        Self::speaking(RespVersion::Two, value_max, lists)
    }

    /// The same of a connection that speaks this.
    pub(crate) fn speaking(resp: RespVersion, value_max: usize, lists: Lists) -> Self {
        let (state, missing) = (State::Line(Vec::new()), Vec::new());
        Self { state, value_max, lists, missing, left: lists, resp, is_push: false }
    }

    /// How many replies end within `bytes`.
    ///
    /// # Errors
    /// What comes is no reply, or a string that is too large. The connection has to be closed.
    pub(crate) fn scan(&mut self, mut bytes: &[u8]) -> Result<usize, Failure> {
        let mut ended = 0;
        while let Some((first, rest)) = bytes.split_first() {
            match &mut self.state {
                State::Line(line) => {
                    line.push(*first);
                    bytes = rest;
                    if line.ends_with(LINE_END) {
                        let announced = announced(line, self.value_max, self.resp)?;
                        self.state = State::Line(Vec::new());
                        match announced {
                            Announced::Body(length) => {
                                self.left.bytes =
                                    self.left.bytes.checked_sub(length).ok_or(Failure::TooLarge)?;
                                self.state = State::Body(length);
                                self.skip_empty_body();
                            }
                            Announced::List(elements) => ended += self.begin_list(elements)?,
                            Announced::Push(elements) => {
                                if !self.missing.is_empty() {
                                    return Err(Failure::Malformed);
                                }
                                self.is_push = true;
                                ended += self.begin_list(elements)?;
                            }
                            Announced::Nothing => ended += self.element_ends(),
                        }
                    } else if line.len() > LINE_MAX || !is_begun(line, self.resp) {
                        return Err(Failure::Malformed);
                    }
                }
                State::Body(missing) => {
                    let come = bytes.len().min(*missing);
                    *missing -= come;
                    bytes = bytes.get(come..).unwrap_or_default();
                    self.skip_empty_body();
                }
                State::Ending(ending) => {
                    bytes = rest;
                    match ending.split_first() {
                        Some((expected, [])) if expected == first => {
                            self.state = State::Line(Vec::new());
                            ended += self.element_ends();
                        }
                        Some((expected, missing)) if expected == first => *ending = missing,
                        _ => return Err(Failure::Malformed),
                    }
                }
            }
        }
        Ok(ended)
    }

    /// How many replies have ended with it: one, where a list is empty and the whole reply.
    fn begin_list(&mut self, elements: usize) -> Result<usize, Failure> {
        if self.missing.len() == self.lists.nested {
            return Err(Failure::Malformed);
        }
        self.left.elements = self.left.elements.checked_sub(elements).ok_or(Failure::TooLarge)?;
        if elements == 0 {
            return Ok(self.element_ends());
        }
        self.missing.push(elements);
        Ok(0)
    }

    /// Ends every list that has all of its elements now. How many replies have ended.
    fn element_ends(&mut self) -> usize {
        while let Some(missing) = self.missing.last_mut() {
            *missing -= 1;
            if *missing > 0 {
                return 0;
            }
            self.missing.pop();
        }
        self.left = self.lists;
        usize::from(!std::mem::take(&mut self.is_push))
    }

    fn skip_empty_body(&mut self) {
        if matches!(self.state, State::Body(0)) {
            self.state = State::Ending(LINE_END);
        }
    }
}

/// What follows a line.
enum Announced {
    Nothing,
    /// A string of so many bytes.
    Body(usize),
    /// So many elements.
    List(usize),
    /// The same of what nobody has asked for.
    Push(usize),
}

/// Whether a line that begins so may be one.
fn is_begun(line: &[u8], resp: RespVersion) -> bool {
    match line.first() {
        Some(b'+' | b'-' | b':' | b'$' | b'*') => true,
        Some(b'_' | b'%' | b'>') => resp == RespVersion::Three,
        _ => false,
    }
}

fn announced(line: &[u8], value_max: usize, resp: RespVersion) -> Result<Announced, Failure> {
    if !is_begun(line, resp) {
        return Err(Failure::Malformed);
    }
    let text = line.strip_suffix(LINE_END).unwrap_or(line);
    match text.split_first() {
        Some((b'_', b"")) => Ok(Announced::Nothing),
        Some((b'%', digits)) => {
            let elements = count(digits)?.and_then(|pairs| pairs.checked_mul(2));
            elements.map(Announced::List).ok_or(Failure::TooLarge)
        }
        Some((b'>', digits)) => match count(digits)? {
            Some(0) => Err(Failure::Malformed),
            elements => elements.map(Announced::Push).ok_or(Failure::TooLarge),
        },
        Some((b'$', b"-1") | (b'+' | b'-', _)) => Ok(Announced::Nothing),
        Some((b'*', b"-1")) => Ok(Announced::List(0)),
        Some((b':', number)) => {
            let digits = number.strip_prefix(b"-").unwrap_or(number);
            // 19 digits are what 64 bits hold.
            let is_number = (1..=19).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
            if is_number { Ok(Announced::Nothing) } else { Err(Failure::Malformed) }
        }
        Some((b'$', digits)) => {
            // What does not fit into a number is too large as well.
            let length = count(digits)?.filter(|length| *length <= value_max);
            length.map(Announced::Body).ok_or(Failure::TooLarge)
        }
        Some((b'*', digits)) => count(digits)?.map(Announced::List).ok_or(Failure::TooLarge),
        _ => Err(Failure::Malformed),
    }
}

/// A number of decimal digits; none where it is larger than any.
fn count(digits: &[u8]) -> Result<Option<usize>, Failure> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Failure::Malformed);
    }
    Ok(digits
        .iter()
        .try_fold(0_usize, |count, digit| count.checked_mul(10)?.checked_add(usize::from(digit - b'0'))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use ::redis::parse_redis_value;
    use proptest::prelude::*;

    use super::*;

    const VALUE_MAX: usize = 100;

    fn scan(bytes: &[u8], step: usize) -> Result<usize, Failure> {
        let mut scanner = Scanner::new(VALUE_MAX);
        bytes.chunks(step.max(1)).map(|piece| scanner.scan(piece)).sum()
    }

    fn check(bytes: &[u8], expected: Result<usize, Failure>) {
        for step in [1, 2, 3, bytes.len()] {
            assert_eq!(scan(bytes, step), expected, "{} by {step}", bytes.escape_ascii());
        }
    }

    #[test]
    fn replies_that_larder_asks_for_are_counted() {
        check(b"", Ok(0));
        check(b"+OK\r\n", Ok(1));
        check(b"+PONG\r\n:-2\r\n$-1\r\n-WRONGTYPE Operation\r\n", Ok(4));
        check(b"$0\r\n\r\n:-1\r\n", Ok(2));
        check(b"$7\r\na\r\nb\r\nc\r\n", Ok(1));
        check(b"$4\r\nbo", Ok(0));
        check(b"$4\r\nbody\r", Ok(0));
        check(b"+a\rb\nc\r\n", Ok(1));
    }

    #[test]
    fn lists_rubbish_and_ends_in_the_wrong_place_are_malformed() {
        for bytes in [
            &b"*1\r\n+OK\r\n"[..],
            b"*-1\r\n",
            b"%0\r\n",
            b">1\r\n",
            b"_\r\n",
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            b"VALUE /a 0 5\r\n",
            b"\r\n",
            b"$\r\n",
            b"$-2\r\n",
            b"$+5\r\nother\r\n",
            b"$ 5\r\nother\r\n",
            b"$5x\r\n",
            b"$5\r\nbodybody\r\n",
            b"$5\r\nother\n",
            b":\r\n",
            b":-\r\n",
            b":1x\r\n",
            b":99999999999999999999\r\n",
            b"+OK\r\n?",
        ] {
            check(bytes, Err(Failure::Malformed));
        }
        check(&[b"+".as_slice(), &[b'a'; 5000]].concat(), Err(Failure::Malformed));
    }

    #[test]
    fn strings_beyond_the_limit_end_with_their_announcement() {
        check(format!("${VALUE_MAX}\r\n{}\r\n", "a".repeat(VALUE_MAX)).as_bytes(), Ok(1));
        check(format!("${}\r\n", VALUE_MAX + 1).as_bytes(), Err(Failure::TooLarge));
        check(b"$99999999999999999999999999999999\r\n", Err(Failure::TooLarge));
    }

    #[test]
    fn lists_are_followed_within_their_bounds() {
        let lists = Lists { nested: 3, elements: 6, bytes: 12 };
        let check = |bytes: &[u8], expected| {
            for step in [1, 2, 3, bytes.len()] {
                let mut scanner = Scanner::with_lists(VALUE_MAX, lists);
                let ended: Result<usize, _> = bytes.chunks(step).map(|piece| scanner.scan(piece)).sum();
                assert_eq!(ended, expected, "{} by {step}", bytes.escape_ascii());
            }
        };
        check(b"*0\r\n*-1\r\n$-1\r\n", Ok(3));
        check(b"*2\r\n$1\r\na\r\n:1\r\n+OK\r\n", Ok(2));
        check(b"*1\r\n*2\r\n*0\r\n*1\r\n$3\r\nabc\r\n", Ok(1));
        check(b"*1\r\n*2\r\n*0\r\n*1\r\n$3\r\nabc", Ok(0));
        check(b"*2\r\n$0\r\n\r\n", Ok(0));
        check(b"*3\r\n+a\r\n+b\r\n+c\r\n*4\r\n+a\r\n+b\r\n+c\r\n+d\r\n", Ok(2));
        check(b"*1\r\n*1\r\n*1\r\n*1\r\n", Err(Failure::Malformed));
        check(b"*-2\r\n", Err(Failure::Malformed));
        check(b"*7\r\n", Err(Failure::TooLarge));
        check(b"*3\r\n*3\r\n*1\r\n", Err(Failure::TooLarge));
        check(b"*2\r\n$6\r\nabcdef\r\n$7\r\n", Err(Failure::TooLarge));
    }

    #[test]
    fn of_resp3_maps_and_nulls_are_followed_and_pushes_are_no_replies() {
        let lists = Lists { nested: 3, elements: 12, bytes: 64 };
        let check = |bytes: &[u8], expected| {
            for step in [1, 2, 3, bytes.len()] {
                let mut scanner = Scanner::speaking(RespVersion::Three, VALUE_MAX, lists);
                let ended: Result<usize, _> = bytes.chunks(step).map(|piece| scanner.scan(piece)).sum();
                assert_eq!(ended, expected, "{} by {step}", bytes.escape_ascii());
            }
        };
        check(b"_\r\n$-1\r\n*2\r\n_\r\n$1\r\na\r\n", Ok(3));
        check(b"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n%0\r\n", Ok(1));
        let push = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";
        check(push, Ok(0));
        check(
            &[b"+PONG\r\n", &push[..], b":1\r\n", b">2\r\n$10\r\ninvalidate\r\n_\r\n:2\r\n"].concat(),
            Ok(3),
        );
        for bytes in [
            &b">0\r\n"[..],
            b"*1\r\n>1\r\n+a\r\n",
            b"_x\r\n",
            b"%-1\r\n",
            b"~1\r\n+a\r\n",
            b"#t\r\n",
            b",1.5\r\n",
        ] {
            check(bytes, Err(Failure::Malformed));
        }
        check(b"%7\r\n", Err(Failure::TooLarge));
        check(b"%9223372036854775808\r\n", Err(Failure::TooLarge));
    }

    fn reply() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(b"$-1\r\n".to_vec()),
            any::<i64>().prop_map(|number| format!(":{number}\r\n").into_bytes()),
            "[+-][ -~]{0,40}".prop_map(|line| format!("{line}\r\n").into_bytes()),
            proptest::collection::vec(any::<u8>(), 0..=VALUE_MAX)
                .prop_map(|body| { [format!("${}\r\n", body.len()).as_bytes(), &body, b"\r\n"].concat() }),
        ]
    }

    proptest! {
        #[test]
        fn any_replies_are_counted_however_they_are_cut(
            replies in proptest::collection::vec(reply(), 0..8),
            step in 1_usize..40,
        ) {
            prop_assert_eq!(scan(&replies.concat(), step), Ok(replies.len()));
        }

        /// What is one reply here is one for the library, and of a size that it may have.
        #[test]
        fn what_passes_is_what_the_library_reads(
            bytes in prop_oneof![
                "[$:+*_-][ -~\r\n]{0,30}".prop_map(String::into_bytes),
                reply(),
                (reply(), any::<proptest::sample::Index>(), any::<u8>()).prop_map(|(mut reply, at, byte)| {
                    let at = at.index(reply.len());
                    reply[at] = byte;
                    reply
                }),
            ],
        ) {
            let whole = scan(&bytes, bytes.len());
            prop_assert_eq!(scan(&bytes, 1).is_err(), whole.is_err());
            if whole == Ok(1) && std::str::from_utf8(&bytes).is_ok() {
                let value = parse_redis_value(&bytes);
                prop_assert!(value.is_ok() || bytes.first() == Some(&b':'), "{:?}", value);
                if let Ok(::redis::Value::BulkString(body)) = value {
                    prop_assert!(body.len() <= VALUE_MAX);
                }
            }
        }
    }
}
