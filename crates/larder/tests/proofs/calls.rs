//! Calls as gRPC makes them, over HTTP/2 on both sides: both directions at once, trailers, pauses beyond the limits that
//! hold for others, and a client that gives up at every stage. The server is made by hand: it speaks HTTP/2, and answers while
//! the request is on its way; the testkit's origin does neither.

use std::time::Duration;

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::support::{Process, within, written};

/// Beyond every limit of the config below.
const PAUSE: Duration = Duration::from_millis(500);

/// A server of calls, which tells what became of them.
struct Server {
    url: String,
    notes: mpsc::UnboundedReceiver<String>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (note, notes) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let note = note.clone();
                tokio::spawn(async move {
                    let Ok(mut connection) = h2::server::handshake(socket).await else { return };
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        tokio::spawn(serve(request, respond, note.clone()));
                    }
                });
            }
        });
        Self { url, notes }
    }

    async fn note(&mut self) -> String {
        within("a note of the server", self.notes.recv()).await.unwrap()
    }
}

async fn next(body: &mut RecvStream) -> Option<Result<Bytes, h2::Error>> {
    let data = body.data().await?;
    if let Ok(data) = &data {
        let _ = body.flow_control().release_capacity(data.len());
    }
    Some(data)
}

async fn serve(
    request: Request<RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    note: mpsc::UnboundedSender<String>,
) {
    let (head, mut body) = request.into_parts();
    let field = |name: &str| head.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("-").to_owned();
    let begin = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    match head.uri.path() {
        "/echo" => {
            let _ = note.send(format!("te {}, timeout {}", field("te"), field("grpc-timeout")));
            let mut answer = respond.send_response(begin, false).unwrap();
            while let Some(Ok(data)) = next(&mut body).await {
                answer.send_data(data, false).unwrap();
            }
            answer.send_trailers(trailers).unwrap();
        }
        "/late" => {
            while let Some(Ok(_)) = next(&mut body).await {}
            tokio::time::sleep(PAUSE).await;
            let mut answer = respond.send_response(begin, false).unwrap();
            answer.send_data(Bytes::from_static(b"one"), false).unwrap();
            tokio::time::sleep(PAUSE).await;
            answer.send_data(Bytes::from_static(b"two"), false).unwrap();
            answer.send_trailers(trailers).unwrap();
        }
        "/trailers-only" => {
            let head = Response::builder().header("grpc-status", "5").body(()).unwrap();
            respond.send_response(head, true).unwrap();
        }
        stage => {
            let mut begun = (stage == "/answering").then(|| {
                let mut answer = respond.send_response(begin, false).unwrap();
                answer.send_data(Bytes::from_static(b"one"), false).unwrap();
                answer
            });
            let mut read = 0;
            while let Some(Ok(data)) = next(&mut body).await {
                read += data.len();
                // The end may come in a frame of its own.
                if !data.is_empty() {
                    let _ = note.send(format!("{stage} got {read}"));
                }
            }
            let reset = std::future::poll_fn(|cx| match &mut begun {
                Some(answer) => answer.poll_reset(cx),
                None => respond.poll_reset(cx),
            });
            let _ = note.send(format!("{stage} {:?}", reset.await.map(|reason| reason == Reason::CANCEL)));
        }
    }
}

async fn larder_for(server: &Server) -> (Process, tempfile::TempDir) {
    let (directory, path) = written(&format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nworkers = 2\n[limits]\nbody_idle = \"200ms\"\n\
         [origins.app]\nservers = \"{}\"\nprotocol = \"h2\"\nfirst_byte_timeout = \"200ms\"\n\
         between_bytes_timeout = \"200ms\"\n[[site]]\norigin = \"app\"\ncache = \"off\"\n",
        server.url
    ));
    (Process::run_config(&path).await, directory)
}

fn call(path: &str) -> Request<()> {
    Request::post(format!("http://calls.test{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", "10S")
        .body(())
        .unwrap()
}

type Client = h2::client::SendRequest<Bytes>;

async fn connected(larder: &Process) -> Client {
    let stream = TcpStream::connect(larder.addr).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn message(body: &mut RecvStream) -> Option<Bytes> {
    within("a message", next(body)).await.transpose().unwrap()
}

async fn echoes(server: &mut Server, client: &mut Client, pause: Duration) {
    *client = within("a free stream", client.clone().ready()).await.unwrap();
    let (answer, mut sending) = client.send_request(call("/echo"), false).unwrap();
    let mut body = within("a head", answer).await.unwrap().into_body();
    assert_eq!(server.note().await, "te trailers, timeout 10S");
    for text in ["one", "two"] {
        tokio::time::sleep(pause).await;
        sending.send_data(Bytes::from_static(text.as_bytes()), false).unwrap();
        assert_eq!(message(&mut body).await.unwrap(), text);
    }
    sending.send_data(Bytes::new(), true).unwrap();
    assert_eq!(message(&mut body).await, None);
    let trailers = within("trailers", body.trailers()).await.unwrap().unwrap();
    assert_eq!(trailers["grpc-status"], "0");
}

#[tokio::test]
async fn calls_flow_in_both_directions_and_may_pause() {
    let mut server = Server::start().await;
    let (larder, _directory) = larder_for(&server).await;
    let mut client = connected(&larder).await;
    echoes(&mut server, &mut client, PAUSE).await;

    client = within("a free stream", client.ready()).await.unwrap();
    let (answer, _) = client.send_request(call("/late"), true).unwrap();
    let mut body = within("a late head", answer).await.unwrap().into_body();
    assert_eq!(message(&mut body).await.unwrap(), "one");
    assert_eq!(message(&mut body).await.unwrap(), "two");
    assert_eq!(message(&mut body).await, None);
    assert_eq!(within("trailers", body.trailers()).await.unwrap().unwrap()["grpc-status"], "0");

    client = within("a free stream", client.ready()).await.unwrap();
    let (answer, _) = client.send_request(call("/trailers-only"), true).unwrap();
    let answer = within("a head", answer).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["grpc-status"]),
        (200, &HeaderValue::from_static("5"))
    );

    // The same limits hold for what is no call.
    client = within("a free stream", client.ready()).await.unwrap();
    let mut other = call("/late");
    other.headers_mut().insert("content-type", HeaderValue::from_static("text/plain"));
    let (answer, _) = client.send_request(other, true).unwrap();
    assert_eq!(within("a refusal", answer).await.unwrap().status(), 504);
}

#[tokio::test]
async fn a_call_that_its_client_gives_up_is_given_up_at_the_server() {
    let mut server = Server::start().await;
    let (larder, _directory) = larder_for(&server).await;
    let before = larder.idle_usage().await;
    let mut client = connected(&larder).await;
    for stage in ["/sent", "/sending", "/answering"] {
        for _ in 0..10 {
            client = within("a free stream", client.ready()).await.unwrap();
            let (answer, mut sending) = client.send_request(call(stage), false).unwrap();
            sending.send_data(Bytes::from_static(b"abc"), stage == "/sent").unwrap();
            assert_eq!(server.note().await, format!("{stage} got 3"));
            if stage == "/answering" {
                let mut body = within("a head", answer).await.unwrap().into_body();
                assert_eq!(message(&mut body).await.unwrap(), "one");
                sending.send_reset(Reason::CANCEL);
            } else {
                sending.send_reset(Reason::CANCEL);
            }
            assert_eq!(server.note().await, format!("{stage} Ok(true)"));
        }
    }
    // The connections have outlived all of them.
    echoes(&mut server, &mut client, Duration::ZERO).await;
    drop(client);
    larder.comes_back_to(&before).await;
}
