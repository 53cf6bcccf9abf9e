//! Where answers go: an HTTP server that keeps every request as raw bytes and misbehaves as told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the sink does with one request.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    /// Answers with a status.
    Status(u16),
    /// Answers 200, after a while.
    Slowly(Duration),
    /// Reads, and never answers.
    Never,
    /// Reads, and closes the connection.
    Close,
    /// Answers 307 to somewhere else.
    Redirect,
}

/// One request, as it came.
#[derive(Debug, Clone)]
pub struct Put {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Put {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Default)]
struct State {
    acts: VecDeque<Act>,
    puts: Vec<Put>,
}

/// A sink on a port of its own.
#[derive(Debug, Clone)]
pub struct Sink {
    state: Arc<Mutex<State>>,
    address: String,
}

impl Sink {
    pub async fn start() -> Sink {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let sink = Sink {
            state: Arc::default(),
            address,
        };
        let served = sink.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(served.clone().serve(stream));
            }
        });
        sink
    }

    /// What the sink does next; after that it answers 200.
    pub fn acts(&self, acts: &[Act]) {
        self.state.lock().expect("a state").acts = acts.iter().copied().collect();
    }

    /// Every request so far, which are then forgotten.
    pub fn take(&self) -> Vec<Put> {
        std::mem::take(&mut self.state.lock().expect("a state").puts)
    }

    /// The path and query of the URL: escapes that must stay, and a signature that must not leak.
    pub const TARGET: &'static str = "/arn%3Aaws%3Acloudformation%3Aeu-central-1/s%7CLimits%7c1%2B2?AWSAccessKeyId=AKIA%2FX&Expires=1&Signature=SECRETsig%3D";
    /// What no log may hold.
    pub const SECRET: &'static str = "SECRETsig";

    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, Sink::TARGET)
    }

    async fn serve(self, mut stream: TcpStream) {
        let Some(put) = read(&mut stream).await else {
            return;
        };
        let act = {
            let mut state = self.state.lock().expect("a state");
            state.puts.push(put);
            state.acts.pop_front().unwrap_or(Act::Status(200))
        };
        let answer = match act {
            Act::Status(status) => format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n"),
            Act::Slowly(pause) => {
                tokio::time::sleep(pause).await;
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned()
            }
            Act::Never => {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                return;
            }
            Act::Close => return,
            Act::Redirect => format!(
                "HTTP/1.1 307 X\r\nlocation: http://{}/elsewhere\r\ncontent-length: 0\r\n\r\n",
                self.address
            ),
        };
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

/// Reads one request, however it is made.
pub async fn read(stream: &mut TcpStream) -> Option<Put> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).expect("a head of text");
    let mut lines = head.split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().expect("a length"));
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            break;
        }
    }
    Some(Put {
        line,
        headers,
        body,
    })
}
