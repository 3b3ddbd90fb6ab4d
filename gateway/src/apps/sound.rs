//! Sound files that apps play: fetched from the given address, and decoded.
//!
//! A sound comes from the app's own server or from a public address: apps must not reach into the gateway's local
//! network. Redirects must stay on the named host.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use audio::{fair::Owner, sound_file};
use gateway_core::limits::SOUND_MS_MAX;
use reqwest::{
    Client, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};
use tokio::{sync::oneshot, time::timeout};
use tools::apps::manifest::App;

use crate::runtime::compute::{Compute, Urgency};

/// Bytes of a file: five minutes of MP3 at 256 kbit/s, or of speech as WAV.
const FILE_BYTES_MAX: usize = 10 * 1024 * 1024;
/// How long fetching may take in total, in milliseconds: an app waits 60 s at most.
const FETCH_MS_MAX: u64 = 15_000;
/// How long connecting may take, in milliseconds.
const CONNECT_MS_MAX: u64 = 5_000;
/// Redirects that are followed, on the same host.
const REDIRECTS_MAX: usize = 3;
/// Longest URL that is fetched, in bytes.
const URL_BYTES_MAX: usize = 2_048;

/// A decoded sound, mono.
#[derive(Clone)]
pub struct Sound {
    /// Samples.
    pub pcm: Arc<Vec<i16>>,
    /// Samples per second.
    pub rate_hz: u32,
}

impl Sound {
    /// Length, rounded up, in milliseconds.
    pub fn ms(&self) -> u32 {
        let ms = (self.pcm.len() as u64 * 1_000).div_ceil(u64::from(self.rate_hz.max(1)));
        u32::try_from(ms).unwrap_or(u32::MAX)
    }

    /// Length in seconds, as sent to apps.
    pub fn seconds(&self) -> f64 {
        self.pcm.len() as f64 / f64::from(self.rate_hz.max(1))
    }

    /// A piece of `piece_ms`, counted from 0; empty after the end.
    pub fn piece(&self, number: u16, piece_ms: u32) -> &[i16] {
        let length = (u64::from(self.rate_hz) * u64::from(piece_ms) / 1_000) as usize;
        let from = length.saturating_mul(number.into()).min(self.pcm.len());
        let to = from.saturating_add(length).min(self.pcm.len());
        self.pcm.get(from..to).unwrap_or_default()
    }
}

/// Fetches and decodes sounds.
pub struct Sounds {
    /// For the app's own server, at any address.
    own: Client,
    /// For all others.
    public: Client,
    compute: Compute,
}

impl Sounds {
    /// The process must have installed its TLS provider before.
    ///
    /// # Errors
    /// The system's certificates cannot be used.
    pub fn new(compute: Compute) -> reqwest::Result<Self> {
        let client = || {
            Client::builder()
                .redirect(redirect::Policy::custom(|attempt| {
                    let from = attempt.previous().last();
                    let stays = from.is_some_and(|from| stays(from, attempt.url()));
                    if stays && attempt.previous().len() <= REDIRECTS_MAX { attempt.follow() } else { attempt.stop() }
                }))
                .no_proxy()
                .connect_timeout(Duration::from_millis(CONNECT_MS_MAX))
        };
        Ok(Self { own: client().build()?, public: client().dns_resolver(Arc::new(PublicOnly)).build()?, compute })
    }

    /// A sound at the rate of the glasses, so that its pieces join without gaps.
    ///
    /// # Errors
    /// Why there is none, as text.
    pub(super) async fn get(&self, app: &App, url: &str, rate_hz: u32, volume: f32) -> Result<Sound, String> {
        let limit = Duration::from_millis(FETCH_MS_MAX);
        let fetched = timeout(limit, self.fetch(app, url)).await;
        let bytes =
            fetched.map_err(|_| format!("fetching the sound took longer than {} s", FETCH_MS_MAX / 1_000))??;
        self.decode(app, bytes, rate_hz, volume).await
    }

    /// Decodes an app's file on a compute thread, where apps take turns.
    ///
    /// # Errors
    /// It is not a sound, or the queue is full, or the app's share of it.
    pub(super) async fn decode(&self, app: &App, bytes: Vec<u8>, rate_hz: u32, volume: f32) -> Result<Sound, String> {
        let (done, decoded) = oneshot::channel();
        let job = move || {
            let pcm = sound_file::decode(&bytes, rate_hz, SOUND_MS_MAX / 1_000).map(|mut pcm| {
                sound_file::attenuate(&mut pcm, volume);
                pcm
            });
            drop(done.send(pcm));
        };
        self.compute.submit_for(Owner::of(&app.package), Urgency::Soon, job).map_err(|error| error.to_string())?;
        let pcm = decoded.await.map_err(|_| "the sound could not be decoded".to_owned())?;
        Ok(Sound { pcm: Arc::new(pcm.map_err(|error| error.to_string())?), rate_hz })
    }

    async fn fetch(&self, app: &App, url: &str) -> Result<Vec<u8>, String> {
        let (url, own) = place(app, url)?;
        let client = if own { &self.own } else { &self.public };
        let failed = |error: reqwest::Error| {
            let why = if error.is_connect() { "its server is not reached, or not allowed" } else { "it broke off" };
            format!("the sound was not fetched: {why} ({})", root(&error.without_url()))
        };
        let mut answer = client.get(url).send().await.map_err(failed)?;
        let status = answer.status();
        if status.is_redirection() {
            return Err("the sound is said to be on another host, which is not followed".to_owned());
        }
        if !status.is_success() {
            return Err(format!("fetching the sound was answered with status {}", status.as_u16()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if bytes.len() + chunk.len() > FILE_BYTES_MAX {
                return Err(format!("the sound has more than {} MiB", FILE_BYTES_MAX >> 20));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

/// The innermost cause of an error: outer ones only say that something failed.
fn root(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// The address of a sound, and whether it is on the app's own server. A bare path is.
fn place(app: &App, url: &str) -> Result<(Url, bool), String> {
    if url.len() > URL_BYTES_MAX {
        return Err(format!("the address of a sound has at most {URL_BYTES_MAX} bytes"));
    }
    let home = Url::parse(&app.public_url).map_err(|error| format!("the app's address is no URL: {error}"))?;
    let url = home.join(url).map_err(|error| format!("the sound's address is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("sounds are fetched by http and https only".to_owned());
    }
    let own = url.origin() == home.origin();
    // Names are checked when they are resolved.
    let literal = url.host_str().map(|host| host.trim_matches(['[', ']']).parse::<IpAddr>());
    if let (false, Some(Ok(address))) = (own, literal)
        && !is_public(address)
    {
        return Err("sounds come from the app's own server or from a public address".to_owned());
    }
    Ok((url, own))
}

/// Whether a redirect is allowed: to the same origin, or to the same host with TLS.
fn stays(from: &Url, to: &Url) -> bool {
    let upgraded = from.scheme() == "http"
        && to.scheme() == "https"
        && from.host_str() == to.host_str()
        && from.port().is_none()
        && to.port().is_none();
    from.origin() == to.origin() || upgraded
}

/// A resolver that returns public addresses only.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err("it has no public address".into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is public (IANA's special-purpose registries, RFC 6890).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || matches!((a, b, c), (0 | 224..=255, ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18 | 19, _));
    !special
}

/// Global unicast without the prefixes that embed an IPv4 address, and without documentation prefixes.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    (0x2000..0x4000).contains(&a) && a != 0x2002 && !(a == 0x2001 && (b < 0x200 || b == 0xdb8)) && a != 0x3fff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app() -> App {
        App { public_url: "http://127.0.0.1:7010/".into(), ..App::default() }
    }

    #[test]
    fn sounds_come_from_the_app_or_from_the_open_internet() {
        let own = |url: &str| place(&app(), url).map(|(url, own)| (url.to_string(), own));
        assert_eq!(own("http://127.0.0.1:7010/a.mp3").unwrap(), ("http://127.0.0.1:7010/a.mp3".into(), true));
        assert_eq!(own("/a.mp3?x=1").unwrap(), ("http://127.0.0.1:7010/a.mp3?x=1".into(), true));
        assert!(!own("https://sounds.example/a.mp3").unwrap().1);
        assert!(!own("https://93.184.215.14/a.mp3").unwrap().1);
        for refused in [
            "http://127.0.0.1:7011/a.mp3",
            "http://192.168.1.1/admin",
            "http://[::1]:7010/a.mp3",
            "http://[::ffff:10.0.0.1]/a.mp3",
            "http://169.254.169.254/latest",
            "http://2130706433/a.mp3",
            "file:///etc/passwd",
            "ftp://sounds.example/a.mp3",
            "http://",
        ] {
            assert!(place(&app(), refused).is_err(), "{refused}");
        }
        assert!(place(&app(), &format!("https://x/{}", "a".repeat(3_000))).is_err());
    }

    #[test]
    fn what_is_public() {
        for public in ["1.1.1.1", "93.184.215.14", "192.0.1.1", "198.20.0.1", "2606:4700::1111", "2a00:1450::1"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for special in ["0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.1.1", "172.16.0.1", "192.0.0.1"]
            .into_iter()
            .chain(["192.168.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fc00::1"])
            .chain(["ff02::1", "2001:db8::1", "2002:7f00:1::", "2001::1", "64:ff9b::7f00:1", "::ffff:127.0.0.1"])
        {
            assert!(!is_public(special.parse().unwrap()), "{special}");
        }
    }

    #[test]
    fn a_redirect_stays_with_its_host() {
        let stays = |from: &str, to: &str| stays(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
        assert!(stays("http://a.example/x", "http://a.example/y"));
        assert!(stays("http://a.example/x", "https://a.example/x"));
        for (from, to) in [
            ("http://a.example/x", "http://b.example/x"),
            ("http://a.example/x", "http://a.example:81/x"),
            ("http://a.example:80/x", "https://a.example:444/x"),
            ("https://a.example/x", "http://a.example/x"),
        ] {
            assert!(!stays(from, to), "{from} {to}");
        }
    }

    #[test]
    fn pieces_of_a_sound_are_the_whole_of_it() {
        let sound = Sound { pcm: Arc::new((0..25_001).map(|it| (it % 7) as i16).collect()), rate_hz: 1_000 };
        assert_eq!((sound.ms(), sound.piece(3, 10_000).len()), (25_001, 0));
        let joined: Vec<i16> = (0..3).flat_map(|number| sound.piece(number, 10_000).to_vec()).collect();
        assert_eq!(joined, *sound.pcm);
    }
}
