//! A request that is being served: answered already, or under way.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use larder_http::message::Response;

use crate::receipt::Receipt;

/// A request that is being served. What is in the index is an answer at once, without a task's state to set up and take
/// down; everything that may have to wait is a future on the heap, so that an idle connection keeps no room for it.
#[expect(clippy::large_enum_variant, reason = "nearly every one is of the large kind")]
pub enum Serving {
    Answered(Option<(Response, Receipt)>),
    Underway(Pin<Box<dyn Future<Output = (Response, Receipt)> + Send>>),
}

impl Future for Serving {
    type Output = (Response, Receipt);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Answered(answer) => Poll::Ready(answer.take().expect("polled after it was ready")),
            Self::Underway(serving) => serving.as_mut().poll(cx),
        }
    }
}
