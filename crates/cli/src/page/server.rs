//! The server of the page: HTTP/1.1 for few browsers, in one thread.

use super::access::{Access, Refusal};
use super::document::{NETWORK_SCRIPT, PLOT_SCRIPT, PLOT_STYLE, SCRIPT, STYLE, line, served};
use super::{Shared, metrics};
use http_body_util::channel::{Channel, Sender};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Maximum number of connections. Further ones wait in the queue of the system.
pub(super) const MAX_CONNECTIONS: usize = 32;

/// Time within which a browser must send the head of its request.
pub(super) const HEAD_WITHIN: Duration = Duration::from_secs(5);

/// Time within which a browser must take an answer or an update. A slower one is disconnected.
const TAKEN_WITHIN: Duration = Duration::from_secs(20);

/// Minimum interval of updates of a page.
const EVERY: Duration = Duration::from_millis(100);

/// Interval of comments that find connections without a browser.
const COMMENT_EVERY: Duration = Duration::from_secs(10);

/// Time for which the end of a command waits until all pages have the last update.
const LAST_WITHIN: Duration = Duration::from_secs(1);

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Policy of a page of results, which has no scripts and contains its style.
const RESULTS_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

type Body = Either<Full<Bytes>, Channel<Bytes>>;

/// Returns a runtime for one thread.
///
/// # Errors
/// When the system has no descriptors left.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}

/// Serves until the command ends.
pub async fn run(places: Vec<(TcpListener, Access)>, shared: Arc<Shared>) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Each listener has a place for its next connection.
    let idle = MAX_CONNECTIONS - places.len();
    for (listener, access) in places {
        let access = Arc::new(access);
        let (connections, shared) = (Arc::clone(&connections), Arc::clone(&shared));
        tokio::spawn(async move {
            // The listener is new, and the runtime has a descriptor for it.
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            loop {
                let Ok(place) = Arc::clone(&connections).acquire_owned().await else { return };
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let (access, shared) = (Arc::clone(&access), Arc::clone(&shared));
                        tokio::spawn(async move {
                            serve(stream, access, shared).await;
                            drop(place);
                        });
                    }
                    // Without free descriptors, the next attempt would fail at once.
                    Err(_) => sleep(EVERY).await,
                }
            }
        });
    }
    // The sender outlives this function, which has a reference to it.
    let _ = shared.ended.subscribe().wait_for(|ended| *ended).await;
    // Browsers that take longer miss the last update.
    let _ = timeout(LAST_WITHIN, connections.acquire_many(idle as u32)).await;
}

async fn serve(stream: TcpStream, access: Arc<Access>, shared: Arc<Shared>) {
    let service = service_fn(|request| {
        let answer = answer(&request, &access, &shared);
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .keep_alive(false)
        .max_buf_size(16 << 10)
        .serve_connection(TokioIo::new(stream), service);
    // The browser sees an error of its connection itself.
    let _ = connection.await;
}

fn answer(request: &Request<Incoming>, access: &Access, shared: &Arc<Shared>) -> Response<Body> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let path = match access.check(request.method().as_str(), host, request.uri().path()) {
        Ok(path) => path,
        Err(Refusal::Method) => {
            let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are possible\n");
            refused.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        Err(Refusal::Host) => {
            return text(StatusCode::FORBIDDEN, "use an address of this host, its name, or localhost\n");
        }
        Err(Refusal::Path) => return text(StatusCode::NOT_FOUND, "no such page\n"),
    };
    if let Some(results) = shared.results().clone() {
        return match path {
            "" => with_policy(file("text/html; charset=utf-8", results), RESULTS_POLICY),
            _ => text(StatusCode::NOT_FOUND, "no such page\n"),
        };
    }
    match path {
        "" => file("text/html; charset=utf-8", served(&shared.update_since(0))),
        "page.js" => file("text/javascript; charset=utf-8", SCRIPT),
        "network.js" => file("text/javascript; charset=utf-8", NETWORK_SCRIPT),
        "page.css" => file("text/css; charset=utf-8", STYLE),
        "uplot.js" => file("text/javascript; charset=utf-8", PLOT_SCRIPT),
        "uplot.css" => file("text/css; charset=utf-8", PLOT_STYLE),
        "state" => file("application/json", line(&shared.update_since(0))),
        "metrics" => {
            let sample = shared.lock().sample();
            let accepted = request.headers().get(header::ACCEPT).and_then(|kinds| kinds.to_str().ok());
            match accepted.is_some_and(|kinds| kinds.contains("application/openmetrics-text")) {
                true => file(metrics::OPEN_METRICS, metrics::text(&sample)),
                false => file(metrics::PLAIN, metrics::plain(&sample)),
            }
        }
        "events" => {
            let after = after(request, &shared.lock().run());
            let (sender, body) = Channel::new(1);
            if request.method() != hyper::Method::HEAD {
                tokio::spawn(feed(Arc::clone(shared), sender, after));
            }
            response(StatusCode::OK, "text/event-stream", Either::Right(body))
        }
        _ => text(StatusCode::NOT_FOUND, "no such page\n"),
    }
}

/// Returns the version that the browser has: after a broken connection in a header, otherwise in the query.
fn after(request: &Request<Incoming>, run: &str) -> u64 {
    let header = request.headers().get("last-event-id").and_then(|id| id.to_str().ok());
    let query = request.uri().query().and_then(|query| query.strip_prefix("after="));
    let version = |id: &str| id.strip_prefix(run)?.strip_prefix('-')?.parse().ok();
    header.or(query).and_then(version).unwrap_or(0)
}

/// Sends updates as long as the browser takes them. A slow browser gets fewer of them, each with all changes since the last one.
async fn feed(shared: Arc<Shared>, mut browser: Sender<Bytes>, after: u64) {
    let mut changes = shared.changed.subscribe();
    let mut version = after;
    loop {
        changes.mark_unchanged();
        let update = shared.update_since(version);
        let text = match update.version() > version || version == 0 {
            true => format!("id: {}\ndata: {}\n\n", update.id(), line(&update)),
            false => ":\n\n".to_owned(),
        };
        version = update.version();
        let ended = update.has_ended();
        drop(update);
        match timeout(TAKEN_WITHIN, browser.send_data(text.into())).await {
            Ok(Ok(())) if !ended => {}
            _ => return,
        }
        if !*shared.ended.borrow() {
            sleep(EVERY).await;
        }
        // After this time, a comment follows.
        let _ = timeout(COMMENT_EVERY, changes.changed()).await;
    }
}

fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    response(status, "text/plain; charset=utf-8", Either::Left(Full::new(text.into())))
}

fn file(kind: &'static str, content: impl Into<Bytes>) -> Response<Body> {
    response(StatusCode::OK, kind, Either::Left(Full::new(content.into())))
}

fn with_policy(mut response: Response<Body>, policy: &'static str) -> Response<Body> {
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}

fn response(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
