//! Gaps are filled by what fits them, and by nothing else.

#![allow(clippy::single_range_in_vec_init, reason = "gaps are a list of ranges, often of one")]

use std::task::Waker;

use super::*;

const WHOLE: &str = "0123456789abcdef";

fn gap(missing: &[Range<u64>]) -> Gap {
    Gap { missing: missing.to_vec(), complete: WHOLE.len() as u64 }
}

struct Script(Vec<&'static str>);

impl http_body::Body for Script {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let next = (!self.0.is_empty()).then(|| self.0.remove(0));
        Poll::Ready(next.map(|next| Ok(Frame::data(Bytes::from_static(next.as_bytes())))))
    }
}

fn script(pieces: &[&'static str]) -> Body {
    Body::Stream { length: None, stream: Box::pin(Script(pieces.to_vec())) }
}

fn read(
    mut stream: impl http_body::Body<Data = Bytes, Error = BodyError> + Unpin,
) -> Result<String, BodyError> {
    let mut found = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        match Pin::new(&mut stream).poll_frame(&mut cx) {
            Poll::Ready(Some(Ok(frame))) => found.extend(frame.into_data().unwrap_or_default()),
            Poll::Ready(Some(Err(error))) => return Err(error),
            Poll::Ready(None) => return Ok(String::from_utf8_lossy(&found).into_owned()),
            Poll::Pending => panic!("nothing here waits"),
        }
    }
}

/// Each answer in turn, by the pieces in which it comes.
fn filled(missing: &[Range<u64>], answers: &[&[&'static str]]) -> Result<String, BodyError> {
    let mut answers = answers.iter().map(|pieces| pieces.to_vec()).collect::<Vec<_>>().into_iter();
    let first = script(&answers.next().unwrap_or_default());
    let mut expected = 1;
    let ask: AskAgain = Box::new(move |number| {
        assert_eq!(number, expected);
        expected += 1;
        let answer = answers.next().map(|pieces| script(&pieces)).ok_or(BodyError::Lost);
        Box::pin(async move { answer })
    });
    read(Rest::new(gap(missing), first, ask))
}

#[test]
fn each_gap_is_asked_for_when_the_one_before_has_come() {
    assert_eq!(filled(&[2..4], &[&["23"]]).as_deref(), Ok("23"));
    assert_eq!(filled(&[0..1, 4..8, 15..16], &[&["0"], &["4", "", "567"], &["f"]]).as_deref(), Ok("04567f"));
}

#[test]
fn what_is_not_exactly_the_gap_breaks_the_body() {
    assert_eq!(filled(&[2..4], &[&["2"]]), Err(BodyError::Framing));
    assert_eq!(filled(&[2..4], &[&["234"]]), Err(BodyError::Framing));
    assert_eq!(filled(&[2..4, 6..8], &[&["23"], &["6"]]), Err(BodyError::Framing));
    assert_eq!(filled(&[2..4, 6..8], &[&["23"]]), Err(BodyError::Lost), "nobody answers");
}

#[test]
fn of_the_whole_only_the_gaps_are_taken() {
    let check = |missing: &[Range<u64>], pieces: &[&'static str], expected: Result<&str, BodyError>| {
        let found = read(without(gap(missing), script(pieces)));
        assert_eq!(found.as_deref().map_err(|error| *error), expected, "{missing:?} {pieces:?}");
    };
    for pieces in
        [&["0123456789abcdef"][..], &["0", "1234", "", "56789abcde", "f"], &["01", "2345678", "9abcdef"]]
    {
        check(&[2..4], pieces, Ok("23"));
        check(&[0..1, 4..8, 15..16], pieces, Ok("04567f"));
        check(&[0..3, 5..6, 7..9], pieces, Ok("012578"));
    }
    check(&[2..4], &["0123456789abcde"], Err(BodyError::Framing));
    check(&[2..4], &["0123456789abcdef0"], Err(BodyError::Framing));
}
