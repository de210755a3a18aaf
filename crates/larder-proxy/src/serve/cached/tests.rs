//! A request step by step, as other requests put something into the store between its steps.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use larder_http::message::Peer;

use super::super::tests::{Fixture, page};
use super::super::{Entered, enter};
use super::*;
use crate::asked::{Asked, Asker};
use crate::fetch::ClientHop;

#[tokio::test]
async fn what_other_larders_have_fetched_is_told_by_the_look_that_finds_it_and_by_no_later_one() {
    let fixture = Fixture::new(page);
    let mut head = crate::testing::request("/a");
    let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let nobody = SocketAddr::from((client, 1));
    let peer = Peer::clear(nobody, nobody);
    let Ok(Entered { route, .. }) = enter(fixture.worker.worker_plan.load(), &mut head, &peer) else {
        panic!("it has no site")
    };
    let hop = ClientHop {
        peer,
        is_waiting: true,
        trusted: false,
        takes_trailers: false,
        via: true,
        assembles: false,
    };
    let worker_plan = Arc::clone(route.worker_plan());
    let context = RequestContext {
        worker: &fixture.worker,
        worker_plan: &worker_plan,
        origin: 0,
        content: Bytes::new(),
    };
    let asker = Asker { hop, server: None, client };
    let mut exchange = Exchange::new(Asked::new(head, None, route), asker, fixture.worker.proxy.clock.now());
    let interims = Interims::default();
    let (mut request, _) = CachedRequest::new(context, &mut exchange, None, &interims);
    // It came here and is of no use any more.
    request.from_others = Some(ELSEWHERE);
    assert!(matches!(request.look(), Step::Recall(_) | Step::Board { .. }));
    fixture.ask(Method::GET, "/a", &[]).await;
    let detail = |step| match step {
        Step::Reply(reply) => reply.status.detail,
        _ => panic!("it is stored"),
    };
    assert_eq!(detail(request.look()), None, "another fetch has stored it");
    request.from_others = Some(ELSEWHERE);
    assert_eq!(detail(request.look()), Some(ELSEWHERE));
    assert_eq!(detail(request.look()), None);
}
