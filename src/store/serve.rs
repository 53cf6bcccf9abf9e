//! The embedded database over HTTP on loopback, for clients that are not this process.
//!
//! The server answers DynamoDB's JSON API to any SDK whose endpoint URL points at it. It checks that a request
//! is signed and not by whom, so it must not be reachable from outside: other addresses are refused. Its
//! handlers block while the database works, so it runs on threads of its own. It prints nothing and handles no
//! signals; the caller says when to stop.

use super::embedded::Embedded;
use super::error::StoreError;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Threads that answer requests. They queue at the database's one lock, so more would only wait there.
const THREADS: usize = 2;

/// A server under way. Dropping it does not stop the server: the future given to [`serve`] does.
#[derive(Debug)]
#[must_use = "await `stopped`, or the process may end before the last answer is sent"]
pub struct Server {
    address: SocketAddr,
    stopped: oneshot::Receiver<Result<(), StoreError>>,
}

impl Server {
    /// Where it listens, the port included when the system chose it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to give a client as its endpoint URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until the server has stopped and every request under way is answered.
    ///
    /// # Errors
    /// [`StoreError::Serve`] when it ended for a reason of its own.
    pub async fn stopped(self) -> Result<(), StoreError> {
        self.stopped.await.map_err(|error| StoreError::Serve {
            source: Box::new(error),
        })?
    }
}

/// Serves the database on a bound listener until `shutdown` completes.
///
/// # Errors
/// [`StoreError::NotLoopback`] for any other address, [`StoreError::Serve`] when threads cannot be started.
pub fn serve(
    embedded: &Embedded,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<Server, StoreError> {
    let address = listener.local_addr().map_err(failed)?;
    if !address.ip().is_loopback() {
        return Err(StoreError::NotLoopback { address });
    }
    listener.set_nonblocking(true).map_err(failed)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("embedded-store")
        .enable_all()
        .build()
        .map_err(failed)?;
    let (report, stopped) = oneshot::channel();
    let embedded = embedded.clone();
    std::thread::Builder::new()
        .name("embedded-store".to_owned())
        .spawn(move || {
            let ended = run(&runtime, &embedded, listener, shutdown);
            // Nobody has to wait for it.
            let _ = report.send(ended);
        })
        .map_err(failed)?;
    Ok(Server { address, stopped })
}

fn run(
    runtime: &Runtime,
    embedded: &Embedded,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), StoreError> {
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        dynoxide::server::serve_with_shutdown(listener, embedded.database(), shutdown)
            .await
            .map_err(|reason| StoreError::Serve {
                source: reason.into(),
            })
    })
}

fn failed(error: std::io::Error) -> StoreError {
    StoreError::Serve {
        source: Box::new(error),
    }
}
