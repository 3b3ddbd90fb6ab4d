//! A local server with scripted byte-wise answers.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// What the server does after a request.
#[derive(Clone)]
pub enum Act {
    /// Sends these bytes at once.
    Send(Vec<u8>),
    /// Sends each of them as one chunk of the HTTP body.
    Chunks(Vec<Vec<u8>>),
    /// Ends the chunked body.
    End,
    /// Closes the connection.
    Close,
    /// Does nothing until the peer closes, and then reports it.
    Hang,
}

pub struct Server {
    pub url: String,
    pub connections: Arc<AtomicUsize>,
    pub requests: Arc<Mutex<Vec<String>>>,
    pub hung_up: mpsc::Receiver<()>,
}

pub const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

pub fn streamed(body: &str, size: usize) -> Vec<Act> {
    let chunks = body.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
    vec![Act::Send(STREAM_HEAD.into()), Act::Chunks(chunks), Act::End]
}

pub fn status(status: &str, headers: &str, body: &str) -> Vec<Act> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
    vec![Act::Send(head.into_bytes())]
}

/// The n-th request gets the n-th answer; the last one is repeated.
pub async fn serve(answers: Vec<Vec<Act>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1/", listener.local_addr().expect("an address"));
    let connections = Arc::new(AtomicUsize::new(0));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (hang_up, hung_up) = mpsc::channel(8);
    let shared = (connections.clone(), requests.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            shared.0.fetch_add(1, Ordering::SeqCst);
            let (answers, requests, hang_up) = (answers.clone(), shared.1.clone(), hang_up.clone());
            tokio::spawn(async move {
                converse(stream, &answers, &requests, &hang_up).await;
            });
        }
    });
    Server { url, connections, requests, hung_up }
}

async fn converse(
    mut stream: TcpStream,
    answers: &[Vec<Act>],
    requests: &Mutex<Vec<String>>,
    hang_up: &mpsc::Sender<()>,
) -> Option<()> {
    loop {
        let text = read_request(&mut stream).await?;
        let count = {
            let mut requests = requests.lock().expect("unpoisoned");
            requests.push(text);
            requests.len()
        };
        for act in &answers[(count - 1).min(answers.len() - 1)] {
            match act {
                Act::Send(bytes) => stream.write_all(bytes).await.ok()?,
                Act::Chunks(chunks) => {
                    for chunk in chunks {
                        let head = format!("{:x}\r\n", chunk.len());
                        let whole = [head.as_bytes(), chunk, b"\r\n"].concat();
                        stream.write_all(&whole).await.ok()?;
                        stream.flush().await.ok()?;
                        tokio::task::yield_now().await;
                    }
                }
                Act::End => stream.write_all(b"0\r\n\r\n").await.ok()?,
                Act::Close => return None,
                Act::Hang => {
                    let _ = stream.read(&mut [0; 16]).await;
                    let _ = hang_up.send(()).await;
                    return None;
                }
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
        text.extend_from_slice(&buffer[..length]);
        let whole = String::from_utf8_lossy(&text).to_lowercase();
        let Some((head, _)) = whole.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.split_once("content-length: ")?.1;
        let length: usize = length.split("\r\n").next()?.parse().ok()?;
        if text.len() >= head.len() + 4 + length {
            return Some(String::from_utf8_lossy(&text).into_owned());
        }
    }
}
