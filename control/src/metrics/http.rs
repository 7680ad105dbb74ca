//! As much HTTP/1.1 as a scrape needs: one request, one response, the end.

use super::families::{Family, render};
use crate::endpoint::{Protocol, REQUEST_BYTES};
use std::fmt::Write;

/// Header fields of a request; more is refused.
const FIELDS: usize = 64;

/// Answers scrapes.
pub(super) struct Scrape<F> {
    snapshot: F,
}

impl<F: Fn() -> Vec<Family>> Scrape<F> {
    pub(super) fn new(snapshot: F) -> Self {
        Self { snapshot }
    }

    fn respond(&self, method: &str, target: &str) -> Vec<u8> {
        let path = target.split(['?', '#']).next().unwrap_or(target);
        match (method, path) {
            ("GET" | "HEAD", "/metrics") => {
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                response("200 OK", kind, &render(&(self.snapshot)()), method == "GET")
            }
            ("GET" | "HEAD", _) => plain("404 Not Found", "counters are at /metrics\n"),
            _ => plain("405 Method Not Allowed", "only GET and HEAD\n"),
        }
    }
}

impl<F: Fn() -> Vec<Family> + Send + 'static> Protocol for Scrape<F> {
    fn answer(&mut self, received: &[u8]) -> Option<Vec<u8>> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(received) {
            Ok(httparse::Status::Complete(_)) => {
                Some(self.respond(request.method.unwrap_or(""), request.path.unwrap_or("")))
            }
            Ok(httparse::Status::Partial) if received.len() < REQUEST_BYTES => None,
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                Some(plain("431 Request Header Fields Too Large", "too long\n"))
            }
            Err(_) => Some(plain("400 Bad Request", "not HTTP\n")),
        }
    }
}

fn plain(status: &str, body: &str) -> Vec<u8> {
    response(status, "text/plain; charset=utf-8", body, true)
}

fn response(status: &str, kind: &str, body: &str, with_body: bool) -> Vec<u8> {
    let mut text = String::with_capacity(256 + body.len());
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Allow: GET, HEAD\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if with_body {
        text.push_str(body);
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use crate::metrics::{Family, Kind, Metrics, Value};
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpStream};

    fn metrics() -> Metrics {
        let snapshot = || {
            let family = Family::new("rpcrdma_calls_total", Kind::Counter, "Calls");
            vec![family.with(&[], Value::Whole(7))]
        };
        Metrics::start((Ipv4Addr::LOCALHOST, 0).into(), snapshot).unwrap()
    }

    /// What comes back until the end; a reset after the answer is an end, too.
    fn ask(metrics: &Metrics, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(metrics.address()).unwrap();
        drop(stream.write_all(request));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn a_scrape_gets_the_counters() {
        let metrics = metrics();
        let answer = ask(&metrics, b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}", body.len())),
            "{head}"
        );
        assert!(body.ends_with("\nrpcrdma_calls_total 7\n"), "{body}");
        let head_alone = ask(&metrics, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert_eq!(head_alone.split_once("\r\n\r\n").unwrap().1, "");
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        let metrics = metrics();
        let long = [
            b"GET /metrics HTTP/1.1\r\nA: ".to_vec(),
            vec![b'a'; 8 * 1024],
        ]
        .concat();
        let cases: [(&[u8], &str); 4] = [
            (b"GET / HTTP/1.1\r\n\r\n", "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\x16\x03\x01\x02\r\n\r\n", "400"),
            (&long, "431"),
        ];
        for (request, status) in cases {
            let answer = ask(&metrics, request);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{answer}"
            );
        }
    }
}
