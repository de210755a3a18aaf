//! A template that is compiled while it arrives.
//!
//! In: the stream of a template without a content coding, and its compiler. Out: the same stream, and the program. A piece is
//! fed to the compiler before it is passed on, so that the operations for bytes are there before the bytes are. At the clean end
//! the program is complete before the end shows. Of a stream that breaks, or is dropped before, it never completes.
//! Large pieces are cut, so that compiling keeps no worker from its other work.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use larder_assemble::{Compiler, Program};
use larder_http::body::{BodyError, Stream};

/// What is compiled in one poll.
const STEP_BYTES: usize = 64 * 1024;

/// The program of a template, which grows as the stream is read, and the stream.
pub(crate) fn compiled(stream: Stream, compiler: Compiler) -> (Arc<Program>, Stream) {
    let program = Arc::clone(compiler.program());
    (program, Box::pin(Compiled { stream, compiler: Some(compiler), left: Bytes::new() }))
}

struct Compiled {
    stream: Stream,
    /// Until the end.
    compiler: Option<Compiler>,
    /// What has come and is not compiled.
    left: Bytes,
}

impl http_body::Body for Compiled {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        while this.left.is_empty() {
            match ready!(this.stream.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.left = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Some(Err(error)) => {
                    this.compiler = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    this.compiler.take().map(Compiler::finish);
                    return Poll::Ready(None);
                }
            }
        }
        let piece = this.left.split_to(this.left.len().min(STEP_BYTES));
        if let Some(compiler) = &mut this.compiler {
            compiler.feed(&piece);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use larder_assemble::compile;
    use larder_http::target::reference::DocumentUri;
    use larder_http::template::Language;

    use super::super::script::{frames, next, pieces, read};
    use super::*;

    const TEXT: &[u8] = b"<p><!--#include virtual=\"/a\" --></p><!--#echo var=\"x\" -->";

    fn uri() -> DocumentUri {
        let head = crate::testing::request("/page");
        DocumentUri { scheme: head.scheme, authority: head.authority, target: head.target }
    }

    fn compiler() -> Compiler {
        Compiler::new(Language::Ssi, uri())
    }

    #[test]
    fn any_cutting_makes_the_same_program_and_passes_the_same_bytes() {
        let whole = format!("{:?}", compile(Language::Ssi, uri(), TEXT));
        for bytes in 1..=TEXT.len() {
            let (program, stream) = compiled(pieces(TEXT, bytes), compiler());
            assert_eq!(read(stream), (TEXT.to_vec(), Ok(None)));
            assert!(program.is_complete());
            assert_eq!(format!("{program:?}"), whole, "in pieces of {bytes}");
        }
    }

    #[test]
    fn a_program_is_ahead_of_the_bytes_and_complete_exactly_at_the_clean_end() {
        let (program, mut stream) = compiled(pieces(TEXT, 40), compiler());
        assert!(!program.has_operations());
        let first = next(&mut stream).unwrap().unwrap().into_data().unwrap();
        assert!(program.has_operations() && first.len() == 40);
        assert!(next(&mut stream).is_some_and(|frame| frame.is_ok()) && !program.is_complete());
        assert!(next(&mut stream).is_none() && program.is_complete());
    }

    #[test]
    fn trailers_pass_and_are_no_end() {
        let fields = HeaderMap::from_iter([(http::header::ETAG, HeaderValue::from_static("\"a\""))]);
        let data = Frame::data(Bytes::from_static(TEXT));
        let script = || vec![Ok(Frame::data(Bytes::new())), Ok(Frame::trailers(fields.clone()))];
        let whole = [vec![Ok(data)], script()].into_iter().flatten().collect();
        let (program, stream) = compiled(frames(whole), compiler());
        assert_eq!(read(stream), (TEXT.to_vec(), Ok(Some(fields.clone()))));
        assert!(program.is_complete());
        let broken = [script(), vec![Err(BodyError::Framing)]].into_iter().flatten().collect();
        let (program, stream) = compiled(frames(broken), compiler());
        assert_eq!(read(stream), (Vec::new(), Err(BodyError::Framing)));
        assert!(!program.is_complete());
    }

    #[test]
    fn what_breaks_or_is_dropped_never_completes() {
        let data = || Ok(Frame::data(Bytes::from_static(TEXT)));
        let (program, stream) = compiled(frames(vec![data(), Err(BodyError::Cut)]), compiler());
        assert_eq!(read(stream), (TEXT.to_vec(), Err(BodyError::Cut)));
        assert!(program.has_operations() && !program.is_complete());
        let (program, mut stream) = compiled(frames(vec![data()]), compiler());
        assert!(next(&mut stream).is_some());
        drop(stream);
        assert!(program.has_operations() && !program.is_complete());
    }

    #[test]
    fn large_pieces_are_cut() {
        let text = vec![b'a'; 3 * STEP_BYTES + 1];
        let (_, mut stream) = compiled(pieces(&text, text.len()), compiler());
        let mut sizes = Vec::new();
        while let Some(frame) = next(&mut stream) {
            sizes.push(frame.unwrap().into_data().unwrap().len());
        }
        assert_eq!(sizes, [STEP_BYTES, STEP_BYTES, STEP_BYTES, 1]);
    }
}
