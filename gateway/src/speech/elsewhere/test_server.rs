//! A server on a thread of its own, for tests: each connection gets the next answer, and nobody is there after the last one.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, sync_channel},
    thread,
    time::Duration,
};

use super::settings::Server;

pub(super) enum Answer {
    /// This status, content type and body.
    Sends(u16, &'static str, Vec<u8>),
    /// Nothing, until the peer closes.
    Hangs,
}

/// Settings of the server, and the requests that it has read.
pub(super) fn serve(answers: Vec<Answer>, deadline: Duration) -> (Server, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base_url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let (told, requests) = sync_channel(64);
    let run = move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            told.send(read(&mut stream)).expect("the test listens");
            match answer {
                Answer::Sends(status, kind, body) => {
                    let length = body.len();
                    let head = format!(
                        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                    );
                    // A peer that has read enough is gone.
                    let _gone = stream.write_all(&[head.into_bytes(), body].concat());
                }
                Answer::Hangs => drop(stream.read(&mut [0; 1])),
            }
        }
    };
    thread::Builder::new().name("server".to_owned()).spawn(run).expect("a thread");
    (Server { base_url, model: "m".to_owned(), key: None, deadline }, requests)
}

fn read(stream: &mut TcpStream) -> Vec<u8> {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let length = stream.read(&mut buffer).expect("a request");
        assert!(length > 0, "a whole request");
        request.extend_from_slice(&buffer[..length]);
        let Some(head) = request.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&request[..head]).to_lowercase();
        let body: usize = text
            .split_once("content-length: ")
            .and_then(|(_, rest)| rest.lines().next()?.parse().ok())
            .expect("a length");
        if request.len() >= head + 4 + body {
            return request;
        }
    }
}
