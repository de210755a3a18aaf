//! A template that is compiled while it arrives.
//!
//! In: the stream of a template without a content coding, and its compiler. Out: the same stream, and the program. A piece is
//! fed to the compiler before it is passed on, so that the operations for bytes are there before the bytes are. At the clean end
//! the program is complete before the end shows. Of a stream that breaks, or is dropped before, it never completes.
//! Large pieces are cut, so that compiling keeps no worker from its other work. While it grows, the program counts against the cap of a
//! store. If the store has no room for it, the template is compiled all the same, as far as that goes uncounted: what pages are made of
//! it cannot be known without.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use larder_assemble::{Compiler, Program};
use larder_http::body::{BodyError, Stream};
use larder_store::{Reservation, Store, StoredBody};

/// What is compiled in one poll.
const STEP_BYTES: usize = 64 * 1024;

/// The program of a template, which grows as the stream is read, and the stream. The program counts in `store` meanwhile.
pub(crate) fn compiled(stream: Stream, compiler: Compiler, store: &Arc<Store>) -> (Arc<Program>, Stream) {
    let program = Arc::clone(compiler.program());
    let room = ProgramRoom { store: Some(Arc::clone(store)), reserved: None };
    (program, Box::pin(Compiled { stream, compiler: Some(compiler), left: Bytes::new(), room }))
}

/// What a growing program takes of a store.
struct ProgramRoom {
    /// Until it has no room.
    store: Option<Arc<Store>>,
    reserved: Option<Reservation>,
}

impl ProgramRoom {
    /// Reserves what the program has grown by.
    fn grow(&mut self, program: &Program) {
        let Some(store) = &self.store else { return };
        let before = self.reserved.as_ref().map_or(0, Reservation::bytes);
        let more = StoredBody::program_bytes(program).saturating_sub(before);
        if more == 0 {
            return;
        }
        match (store.reserve(more), &mut self.reserved) {
            (None, _) => self.store = None,
            (Some(more), Some(reserved)) => reserved.absorb(more),
            (more, reserved) => *reserved = more,
        }
    }

    /// From now on the program counts with the body that it is kept beside, or with nothing.
    fn give_back(&mut self) {
        (self.store, self.reserved) = (None, None);
    }
}

struct Compiled {
    stream: Stream,
    /// Until the end.
    compiler: Option<Compiler>,
    /// What has come and is not compiled.
    left: Bytes,
    room: ProgramRoom,
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
                    this.room.give_back();
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    this.compiler.take().map(Compiler::finish);
                    this.room.give_back();
                    return Poll::Ready(None);
                }
            }
        }
        let piece = this.left.split_to(this.left.len().min(STEP_BYTES));
        if let Some(compiler) = &mut this.compiler {
            compiler.feed(&piece);
            this.room.grow(compiler.program());
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
    use larder_store::MemoryStoreSettings;

    use super::super::script::{frames, next, pieces, read};
    use super::*;

    const TEXT: &[u8] = b"<p><!--#include virtual=\"/a\" --></p><!--#echo var=\"x\" -->";

    fn uri() -> DocumentUri {
        let head = crate::testing::request("/page");
        DocumentUri { scheme: head.scheme, authority: head.authority, target: head.target }
    }

    fn store(memory: u64) -> Arc<Store> {
        Store::in_memory(&MemoryStoreSettings { memory, max_object: memory })
    }

    fn compiled(stream: Stream, compiler: Compiler) -> (Arc<Program>, Stream) {
        super::compiled(stream, compiler, &store(1 << 20))
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

    #[test]
    fn a_program_counts_in_the_store_while_it_grows() {
        let text = TEXT.repeat(100);
        let store = store(1 << 20);
        let empty = store.usage().bytes;
        for breaks in [false, true] {
            let mut script: Vec<_> =
                text.chunks(500).map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece)))).collect();
            script.extend(breaks.then_some(Err(BodyError::Cut)));
            let (program, mut stream) = super::compiled(frames(script), compiler(), &store);
            let mut before = empty;
            while let Some(Ok(_)) = next(&mut stream) {
                let now = store.usage().bytes;
                assert_eq!(now - empty, StoredBody::program_bytes(&program));
                assert!(now >= before);
                before = now;
            }
            assert!(before - empty > 20_000, "{before}");
            assert_eq!(store.usage().bytes, empty);
        }
        let (_, mut stream) = super::compiled(pieces(&text, 500), compiler(), &store);
        assert!(next(&mut stream).is_some() && store.usage().bytes > empty);
        drop(stream);
        assert_eq!(store.usage().bytes, empty);
    }

    #[test]
    fn a_program_that_has_no_room_is_compiled_all_the_same() {
        let text = TEXT.repeat(100);
        let store = store(4096);
        let (program, stream) = super::compiled(pieces(&text, 500), compiler(), &store);
        assert_eq!(read(stream), (text, Ok(None)));
        assert!(program.is_complete() && store.usage().bytes <= 4096);
    }
}
