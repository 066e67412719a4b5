//! A QUIC server that coordinates its connections to clients with the same address prefix, and clients that test this server.
//!
//! ```text
//! server serve --listen 127.0.0.1:4433 [--plain]
//! server fetch --from 127.0.0.1:4433 --clients 100 --bytes 30000
//! server demo        both in one process: 100 clients behind one prefix
//! ```
//!
//! `--plain` switches the coordination off, for comparison. A client opens a stream, sends the number of bytes that it requests,
//! and reads these bytes. `fetch` prints the duration of each download in seconds. The certificate is created at the start and
//! not verified, because this is an example.

use faircast_cocoon_quinn::Cocoon;
use quinn::congestion::CubicConfig;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, Incoming, ServerConfig, TransportConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Maximum number of bytes in a request.
const MAX: u64 = 1 << 30;

#[tokio::main]
async fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str, default: &str| {
        let at = words.iter().position(|word| word == name);
        at.and_then(|at| words.get(at + 1)).map_or(default, String::as_str).to_owned()
    };
    let plain = words.iter().any(|word| word == "--plain");
    match words.first().map(String::as_str) {
        Some("serve") => {
            let server = Server::new(value("--listen", "127.0.0.1:4433").parse()?, plain)?;
            println!("listening on {}", server.endpoint.local_addr()?);
            server.run().await;
        }
        Some("fetch") => {
            let (clients, bytes) = (value("--clients", "100").parse()?, value("--bytes", "30000").parse()?);
            for done in fetch_all(value("--from", "127.0.0.1:4433").parse()?, clients, bytes).await {
                println!("{:.6}", done.seconds);
            }
        }
        Some("demo") => {
            let server = Server::new("127.0.0.1:0".parse()?, plain)?;
            let (from, cocoon) = (server.endpoint.local_addr()?, server.cocoon.clone());
            let serving = tokio::spawn(server.run());
            let done = fetch_all(from, 100, 100_000).await;
            println!("{} downloads; {:?}; {:?}", done.len(), cocoon.groups(), cocoon.counters());
            serving.abort();
        }
        _ => return Err("say serve, fetch or demo".into()),
    }
    Ok(())
}

struct Server {
    endpoint: Endpoint,
    config: ServerConfig,
    cocoon: Cocoon,
    plain: bool,
}

impl Server {
    fn new(listen: SocketAddr, plain: bool) -> Outcome<Self> {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.into()], key.into())?;
        tls.alpn_protocols = vec![b"example".to_vec()];
        let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
        let endpoint = Endpoint::server(config.clone(), listen)?;
        Ok(Self { endpoint, config, cocoon: Cocoon::new(Arc::new(CubicConfig::default())), plain })
    }

    async fn run(self) {
        while let Some(incoming) = self.endpoint.accept().await {
            let config = self.config_for(&incoming);
            tokio::spawn(async move {
                if let Err(error) = answer(incoming, config).await {
                    eprintln!("a connection ended: {error}");
                }
            });
        }
    }

    /// Returns the configuration of one connection. Its controller is a member of a group.
    fn config_for(&self, incoming: &Incoming) -> ServerConfig {
        let mut transport = TransportConfig::default();
        match self.plain {
            true => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
            false => {
                transport.congestion_controller_factory(self.cocoon.factory(incoming.remote_address().ip()))
            }
        };
        let mut config = self.config.clone();
        config.transport_config(Arc::new(transport));
        config
    }
}

async fn answer(incoming: Incoming, config: ServerConfig) -> Outcome<()> {
    let connection = incoming.accept_with(Arc::new(config))?.await?;
    let (mut send, mut receive) = connection.accept_bi().await?;
    let mut wanted = [0; 8];
    receive.read_exact(&mut wanted).await?;
    let mut left = u64::from_be_bytes(wanted).min(MAX) as usize;
    let block = [7; 16_384];
    while left > 0 {
        let part = left.min(block.len());
        send.write_all(&block[..part]).await?;
        left -= part;
    }
    send.finish()?;
    send.stopped().await?; // until the client has received all bytes
    connection.closed().await;
    Ok(())
}

/// A complete download. Dropping it closes the connection.
struct Done {
    /// Time from the first packet to the last byte, seconds.
    seconds: f64,
    _connection: Connection,
    _endpoint: Endpoint,
}

/// Starts all downloads at once and returns those that succeed.
async fn fetch_all(from: SocketAddr, clients: usize, bytes: u64) -> Vec<Done> {
    let begun: Vec<_> = (0..clients).map(|_| tokio::spawn(fetch(from, bytes))).collect();
    let mut complete = Vec::new();
    for client in begun {
        match client.await {
            Ok(Ok(done)) => complete.push(done),
            Ok(Err(error)) => eprintln!("a download failed: {error}"),
            Err(error) => eprintln!("a download failed: {error}"),
        }
    }
    complete
}

async fn fetch(from: SocketAddr, bytes: u64) -> Outcome<Done> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"example".to_vec()];
    let any: SocketAddr = if from.is_ipv4() { "0.0.0.0:0".parse()? } else { "[::]:0".parse()? };
    let mut endpoint = Endpoint::client(any)?;
    endpoint.set_default_client_config(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)));
    let begin = Instant::now();
    let connection = endpoint.connect(from, "localhost")?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&bytes.to_be_bytes()).await?;
    send.finish()?;
    let got = receive.read_to_end(MAX as usize).await?;
    let seconds = begin.elapsed().as_secs_f64();
    match got.len() as u64 == bytes {
        true => Ok(Done { seconds, _connection: connection, _endpoint: endpoint }),
        false => Err(format!("{} bytes of {bytes}", got.len()).into()),
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Trusts every server, because the server has no name.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
