//! Fan-outs under way on the command line: how they run, the bars, and the signals that end them early.

use super::progress::Bars;
use super::{Context, Interrupts, Output, args};
use crate::fanout::Settings;
use tokio::task::JoinHandle;

/// Work that the first signal only asks to end, until [`Work::end`].
pub(super) struct Work<'a> {
    context: &'a Context,
    /// How the fan-outs run.
    pub(super) settings: Settings,
    /// What they draw.
    pub(super) bars: Bars,
    hint: JoinHandle<()>,
}

impl<'a> Work<'a> {
    /// From here on a signal is heard between two requests.
    pub(super) fn begin(context: &'a Context, args: &args::Work) -> Work<'a> {
        let stop = context.interrupts.be_graceful();
        let hint = tokio::spawn(stopping(context.interrupts.clone(), context.out.clone()));
        Work {
            context,
            settings: Settings {
                concurrency: usize::from(args.concurrency),
                settle: args.settle,
                stop,
                ..Settings::default()
            },
            bars: Bars::new(&context.out),
            hint,
        }
    }

    /// From here on a signal is the end again.
    pub(super) fn end(self) {
        self.hint.abort();
        self.context.interrupts.be_abrupt();
    }
}

async fn stopping(interrupts: Interrupts, out: Output) {
    interrupts.asked().await;
    out.say("Stopping after the requests under way. Once more to stop at once.");
}
