//! Where connections come in, with what bounds each of them: a number of them, a time for a head, TLS.

use crate::Fault;
use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Connections at once.
const CONNECTIONS: usize = 256;
/// A head of a request, and a handshake, come within this.
const HEAD: Duration = Duration::from_secs(10);
/// Bytes of a head.
const HEAD_BYTES: usize = 16 << 10;
/// At the end answers have so long to be written.
const LAST: Duration = Duration::from_secs(1);

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// An address and a port; port 0: any that is free.
    Tcp(SocketAddr),
    /// A socket in the file system, which its owner and its group may use.
    Unix(PathBuf),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("write unix:/run/netdyno.sock".to_owned()),
                path => Ok(Listen::Unix(path.into())),
            };
        }
        if let Ok(address) = text.parse() {
            return Ok(Listen::Tcp(address));
        }
        let of_host = |host: &str| text.strip_prefix(host).and_then(|port| port.parse().ok());
        if let Some(port) = of_host("localhost:").or_else(|| of_host(":")) {
            return Ok(Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], port))));
        }
        Err("write an IP address and a port: 127.0.0.1:8443, [::1]:8443; or unix:/run/netdyno.sock"
            .to_owned())
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Tcp(address) => address.fmt(f),
            Listen::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Listen {
    /// Do others than this host reach it?
    pub fn is_far(&self) -> bool {
        matches!(self, Listen::Tcp(address) if crate::is_far(address))
    }

    /// `option`: what names it.
    pub(crate) fn bind(&self, option: &str) -> Result<Bound, Fault> {
        let failed = |error: std::io::Error| {
            let remedy = match error.kind() {
                std::io::ErrorKind::AddrInUse => ": another program listens there; take another port",
                _ => "",
            };
            Fault::Option(format!("{option} {self}: {error}{remedy}"))
        };
        match self {
            Listen::Tcp(address) => {
                let listener = std::net::TcpListener::bind(address).map_err(failed)?;
                listener.set_nonblocking(true)?;
                Ok(Bound::Tcp(listener))
            }
            Listen::Unix(path) => {
                take_away_a_dead_one(path);
                let listener = std::os::unix::net::UnixListener::bind(path).map_err(failed)?;
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(failed)?;
                listener.set_nonblocking(true)?;
                Ok(Bound::Unix(listener, path.clone()))
            }
        }
    }

    /// Takes away what it made.
    pub(crate) fn clean(&self) {
        if let Listen::Unix(path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A socket that a killed server left: nobody answers there.
fn take_away_a_dead_one(path: &Path) {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err_and(refused) {
        let _ = std::fs::remove_file(path);
    }
}

/// A certificate and its key, as PEM files.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The certificate, and those that lead to its root.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl Tls {
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, Fault> {
        let wrong = |option: &str, path: &Path, why: &dyn fmt::Display| {
            Fault::Option(format!("--{option} {}: {why}", path.display()))
        };
        let certs = CertificateDer::pem_file_iter(&self.cert)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong("cert", &self.cert, &error))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| wrong("key", &self.key, &error))?;
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(certs, key)
            .map_err(|error| wrong("cert", &self.cert, &error))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// It listens.
#[derive(Debug)]
pub(crate) enum Bound {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener, PathBuf),
}

impl Bound {
    /// Where, for a person.
    pub fn says(&self, tls: bool) -> String {
        let scheme = if tls { "https" } else { "http" };
        match self {
            Bound::Tcp(listener) => match listener.local_addr() {
                Ok(address) => format!("{scheme}://{address}/"),
                Err(error) => error.to_string(),
            },
            Bound::Unix(_, path) => format!("unix:{}", path.display()),
        }
    }

    /// Answers until `until`.
    pub async fn serve(self, routes: Router, tls: Option<TlsAcceptor>, until: impl Future<Output = ()>) {
        let (ends, end) = watch::channel(false);
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let mut until = pin!(until);
        let door = Door { routes, tls, end };
        // Both were made non-blocking, and this is within a runtime.
        let accept = async {
            match self {
                Bound::Tcp(listener) => {
                    let Ok(listener) = TcpListener::from_std(listener) else { return };
                    loop {
                        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                        match listener.accept().await {
                            Ok((stream, _)) => {
                                let _ = stream.set_nodelay(true);
                                door.clone().open(stream, place);
                            }
                            // Too many descriptors: later there may be one.
                            Err(_) => tokio::time::sleep(LAST).await,
                        }
                    }
                }
                Bound::Unix(listener, _) => {
                    let Ok(listener) = UnixListener::from_std(listener) else { return };
                    loop {
                        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                        match listener.accept().await {
                            Ok((stream, _)) => door.clone().open(stream, place),
                            Err(_) => tokio::time::sleep(LAST).await,
                        }
                    }
                }
            }
        };
        tokio::select! {
            () = accept => {}
            () = &mut until => {}
        }
        let _ = ends.send(true);
        let all = Arc::clone(&places).acquire_many_owned(CONNECTIONS as u32);
        let _ = tokio::time::timeout(LAST, all).await;
    }
}

#[derive(Clone)]
struct Door {
    routes: Router,
    tls: Option<TlsAcceptor>,
    end: watch::Receiver<bool>,
}

impl Door {
    fn open<S>(self, stream: S, place: OwnedSemaphorePermit)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        tokio::spawn(async move {
            let _place = place;
            match &self.tls {
                None => self.talk(stream).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(HEAD, tls.accept(stream)).await {
                        self.talk(stream).await;
                    }
                }
            }
        });
    }

    async fn talk<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
        let service = TowerToHyperService::new(self.routes.clone());
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        let mut end = self.end.clone();
        tokio::select! {
            // What goes wrong here is the client's: it has gone, or does not speak HTTP.
            _ = &mut connection => return,
            _ = end.wait_for(|end| *end) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(LAST, connection).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_others_reach_are_told_from_those_of_this_host() {
        for (text, far) in [
            ("127.0.0.1:8443", false),
            ("localhost:0", false),
            (":8443", false),
            ("[::1]:8443", false),
            ("unix:/run/x.sock", false),
            ("0.0.0.0:8443", true),
            ("[::]:8443", true),
            ("192.0.2.1:80", true),
        ] {
            assert_eq!(text.parse::<Listen>().map(|listen| listen.is_far()), Ok(far), "{text}");
        }
        for wrong in ["", "unix:", "example.org:80", "127.0.0.1", "127.0.0.1:70000"] {
            let said = wrong.parse::<Listen>().expect_err(wrong);
            assert!(said.contains("write"), "{said}");
        }
    }
}
