//! Ctrl-C and termination. While a plan is being carried out the first signal only asks for the
//! end, so that what is owed stays recorded; at any other time, or the second time, it is the end.

use super::exit::Exit;
use crate::fanout::Stop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// A signal that asks a process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// The exit code of a process that it ends.
    pub(super) fn exit(self) -> Exit {
        match self {
            Signal::Interrupt => Exit::Interrupted,
            Signal::Terminate => Exit::Terminated,
        }
    }
}

/// Hears signals. Clones hear the same ones.
#[derive(Debug, Clone)]
pub(super) struct Interrupts {
    stop: Stop,
    graceful: Arc<AtomicBool>,
    first: watch::Receiver<Option<Signal>>,
    fatal: watch::Receiver<Option<Signal>>,
}

impl Interrupts {
    /// Begins to listen, on the runtime that this is called in.
    ///
    /// # Errors
    /// When the system gives no signals.
    pub(super) fn listen() -> io::Result<Interrupts> {
        let mut signals = Signals::new()?;
        let (first_sender, first) = watch::channel(None);
        let (fatal_sender, fatal) = watch::channel(None);
        let interrupts = Interrupts {
            stop: Stop::default(),
            graceful: Arc::new(AtomicBool::new(false)),
            first,
            fatal,
        };
        let (stop, graceful) = (interrupts.stop.clone(), Arc::clone(&interrupts.graceful));
        tokio::spawn(async move {
            loop {
                let signal = signals.next().await;
                let again = first_sender.borrow().is_some();
                first_sender.send_replace(Some(signal));
                stop.set();
                if again || !graceful.load(Ordering::SeqCst) {
                    fatal_sender.send_replace(Some(signal));
                }
            }
        });
        Ok(interrupts)
    }

    /// From here on the first signal only asks for the end. The wish to hand to what works.
    pub(super) fn be_graceful(&self) -> Stop {
        self.graceful.store(true, Ordering::SeqCst);
        self.stop.clone()
    }

    /// From here on a signal is the end again.
    pub(super) fn be_abrupt(&self) {
        self.graceful.store(false, Ordering::SeqCst);
    }

    /// The signal that asked for the end, if one did.
    pub(super) fn heard(&self) -> Option<Signal> {
        *self.first.borrow()
    }

    /// Waits until a signal asks for the end.
    pub(super) async fn asked(&self) -> Signal {
        wait(self.first.clone()).await
    }

    /// Waits for a signal that is the end.
    pub(super) async fn fatal(&self) -> Signal {
        wait(self.fatal.clone()).await
    }
}

async fn wait(mut heard: watch::Receiver<Option<Signal>>) -> Signal {
    if let Ok(signal) = heard.wait_for(Option::is_some).await
        && let Some(signal) = *signal
    {
        return signal;
    }
    // Nobody listens any more: no signal will come.
    std::future::pending().await
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }
}
