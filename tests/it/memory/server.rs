//! A model server that answers "Aye." to every request and keeps the requests.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

const ANSWER: &str = r#"{"id":"1","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Aye."}}]}"#;

/// Serves until its runtime ends.
pub struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                tokio::spawn(async move { serve(stream, &kept).await });
            }
        });
        Self { port, asked }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The body of the last request.
    pub fn last(&self) -> String {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).last().expect("a request").clone()
    }
}

/// Handles one request and closes: the tests need no more of HTTP.
async fn serve(mut stream: TcpStream, kept: &Mutex<Vec<String>>) {
    let mut bytes = Vec::new();
    let body = loop {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned));
        let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        if body.len() >= length {
            break body.to_owned();
        }
    };
    kept.lock().unwrap_or_else(PoisonError::into_inner).push(body);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ";
    let answer = format!("{head}{}\r\n\r\n{ANSWER}", ANSWER.len());
    drop(stream.write_all(answer.as_bytes()).await);
}
