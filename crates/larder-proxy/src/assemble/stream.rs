//! An open page as the body of a response: it is sent while parts of it are still on their way.
//!
//! In: a page. Out: its bytes, as they are known. It ends cleanly only with the end of the page; whatever keeps it from that cuts it.
//! Dropped with the client's connection, it ends the tasks of its fragments. Their fetches go on where others need them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use larder_assemble::IncludeFailure;
use larder_http::body::BodyError;

use super::page::Page;

/// A page that is sent.
pub(crate) struct PageStream(Box<Page>);

impl PageStream {
    pub(crate) fn new(mut page: Box<Page>) -> Self {
        page.open();
        Self(page)
    }
}

impl http_body::Body for PageStream {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(ready!(self.0.poll_next(cx)).map(|next| {
            next.map(Frame::data).map_err(|reason| {
                self.0.cut(reason);
                match reason {
                    IncludeFailure::TooLarge => BodyError::TooLarge,
                    _ => BodyError::Cut,
                }
            })
        }))
    }
}
