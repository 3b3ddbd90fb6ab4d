//! The messages between the two processes.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    net::{TcpListener, UdpSocket},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream as Pair,
    },
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
};

use crate::transport::sockets::Sockets;

/// Longest line: an error with its causes.
const LINE_BYTES_MAX: u64 = 16 * 1024;
/// How long the sockets may take to arrive: they are sent before the process is started.
const SOCKETS_MAX: Duration = Duration::from_secs(5);
/// In the byte that comes with the sockets: there is one for QUIC, too.
const WITH_QUIC: u8 = 1;
/// A service manager gave them.
const GIVEN: u8 = 2;

/// What the old process says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromOld {
    /// The data folder is free.
    Go,
}

/// What the new process says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromNew {
    /// Everything but the data folder is there.
    Loaded,
    /// Connections are accepted.
    Serving,
    /// It gives up.
    Failed(String),
}

/// One process's end of the pair of sockets: a line of JSON for each message.
pub(super) struct Channel(BufReader<UnixStream>);

impl Channel {
    /// # Errors
    /// The system refuses.
    pub(super) fn new(pair: Pair) -> io::Result<Self> {
        pair.set_nonblocking(true)?;
        Ok(Self(BufReader::new(UnixStream::from_std(pair)?)))
    }

    /// # Errors
    /// The other process is gone.
    pub(super) async fn tell(&mut self, message: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.0.get_mut().write_all(&line).await.context("the other process is gone")
    }

    /// The next message.
    ///
    /// # Errors
    /// The other process is gone, or says what is no message.
    pub(super) async fn hear<M: DeserializeOwned>(&mut self) -> Result<M> {
        let mut line = Vec::new();
        let gone = "the other process ended without a word";
        // A reset: it had not read everything when it ended.
        (&mut self.0).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await.context(gone)?;
        ensure!(!line.is_empty(), gone);
        serde_json::from_slice(&line).context("the other process says what is no message")
    }
}

/// Hands the other process the listening sockets, in a message of their own before any line.
///
/// # Errors
/// The system refuses.
pub(super) fn send_sockets(pair: &Pair, sockets: &Sockets) -> Result<()> {
    let mut descriptors = vec![sockets.web.as_fd()];
    descriptors.extend(sockets.quic.as_ref().map(|socket| socket.as_fd()));
    let about = [(sockets.quic.is_some(), WITH_QUIC), (sockets.given, GIVEN)];
    let about = about.iter().filter(|(is_so, _)| *is_so).map(|(_, bit)| bit).sum();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ensure!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)), "the sockets do not fit");
    sendmsg(pair, &[IoSlice::new(&[about])], &mut ancillary, SendFlags::empty()).context("sending the sockets")?;
    Ok(())
}

/// Receives them.
///
/// # Errors
/// None come in time, or others than a listening TCP socket and a UDP socket.
pub(super) fn receive_sockets(pair: &Pair) -> Result<Sockets> {
    pair.set_read_timeout(Some(SOCKETS_MAX))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut about = [0];
    let mut into = [IoSliceMut::new(&mut about)];
    let received =
        recvmsg(pair, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC).context("receiving the sockets")?;
    ensure!(received.bytes == 1, "no sockets came");
    let mut descriptors: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    let quic = match (about[0] & WITH_QUIC, descriptors.len()) {
        (0, 1) => None,
        (WITH_QUIC, 2) => descriptors.pop().map(UdpSocket::from),
        (_, count) => bail!("{count} sockets came, which are not those that were announced"),
    };
    let web = TcpListener::from(descriptors.pop().context("no socket came")?);
    web.local_addr().context("what came is no socket")?;
    Ok(Sockets { web, quic, given: about[0] & GIVEN != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sockets_and_words_arrive() {
        let (old, new) = Pair::pair().unwrap();
        let (any, loopback) = ("127.0.0.1:0".parse().unwrap(), "127.0.0.1:0".parse().unwrap());
        let sockets = Sockets::bind(any, Some(loopback)).await.unwrap();
        send_sockets(&old, &sockets).unwrap();
        let got = receive_sockets(&new).unwrap();
        let address = |sockets: &Sockets| {
            (sockets.web.local_addr().unwrap(), sockets.quic.as_ref().map(|socket| socket.local_addr().unwrap()))
        };
        assert_eq!(address(&got), address(&sockets));
        let (mut old, mut new) = (Channel::new(old).unwrap(), Channel::new(new).unwrap());
        new.tell(&FromNew::Failed("no room".to_owned())).await.unwrap();
        assert_eq!(old.hear::<FromNew>().await.unwrap(), FromNew::Failed("no room".to_owned()));
        old.tell(&FromOld::Go).await.unwrap();
        assert_eq!(new.hear::<FromOld>().await.unwrap(), FromOld::Go);
        drop(old);
        assert!(new.hear::<FromOld>().await.is_err(), "nobody is left");
    }

    #[test]
    fn what_is_no_socket_is_refused() {
        let (old, new) = Pair::pair().unwrap();
        old.set_nonblocking(false).unwrap();
        // A line in place of the sockets.
        io::Write::write_all(&mut &old, b"\"go\"\n").unwrap();
        assert!(receive_sockets(&new).is_err());
        let (old, new) = Pair::pair().unwrap();
        drop(old);
        assert!(receive_sockets(&new).is_err());
    }
}
