//! What the figures are measured with: wall and processor time, peak memory, requests.
//!
//! Processor time and memory are read from Linux's `/proc`; elsewhere a bench fails and says so. Nothing
//! here knows what is measured.

use crate::Failure;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What a piece of work took.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// From its start to its end.
    pub wall: Duration,
    /// Of every thread of this process, in steps of 10 ms.
    pub processor: Duration,
}

/// Runs until it is asked.
pub struct Stopwatch {
    started: Instant,
    processor: Duration,
}

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "a bench measures time; nothing it measures decides anything by it"
    )]
    pub fn start() -> Result<Stopwatch, Failure> {
        Ok(Stopwatch {
            processor: processor_time()?,
            started: Instant::now(),
        })
    }

    pub fn stop(&self) -> Result<Cost, Failure> {
        Ok(Cost {
            wall: self.started.elapsed(),
            processor: processor_time()?.saturating_sub(self.processor),
        })
    }
}

/// Processor time of this process so far, user and system. The kernel counts it in hundredths of a second.
fn processor_time() -> Result<Duration, Failure> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The second field, the program's name in parentheses, may hold blanks; `utime` is the 14th field.
    let (_, after_name) = stat.rsplit_once(')').ok_or("unreadable /proc/self/stat")?;
    let times = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = times
        .map(str::parse::<u64>)
        .sum::<Result<u64, std::num::ParseIntError>>()?;
    Ok(Duration::from_millis(ticks * 10))
}

/// The most memory this process has had resident so far, in KiB.
pub fn peak_memory_kib() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.ok_or("no VmHWM in /proc/self/status")?;
    Ok(peak.trim().trim_end_matches(" kB").parse()?)
}

/// Counts the requests of a client, retries included. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct Requests(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: AtomicUsize,
    writes: AtomicUsize,
    batches: AtomicUsize,
    under_way: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl Requests {
    /// The client, counted.
    pub fn of(&self, client: &Client) -> Client {
        Client::from_conf(
            client
                .config()
                .to_builder()
                .interceptor(self.clone())
                .build(),
        )
    }

    /// Requests since the last time this was asked.
    pub fn take(&self) -> usize {
        self.0.writes.store(0, Ordering::SeqCst);
        self.0.batches.store(0, Ordering::SeqCst);
        self.0.most_at_once.store(0, Ordering::SeqCst);
        self.0.all.swap(0, Ordering::SeqCst)
    }

    /// Those among them that are no reads.
    pub fn writes(&self) -> usize {
        self.0.writes.load(Ordering::SeqCst)
    }

    /// Those among them that read many items at once.
    pub fn batches(&self) -> usize {
        self.0.batches.load(Ordering::SeqCst)
    }

    /// The most among them that waited for their answers at the same time.
    pub fn most_at_once(&self) -> usize {
        self.0.most_at_once.load(Ordering::SeqCst)
    }
}

impl Intercept for Requests {
    fn name(&self) -> &'static str {
        "Requests"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let target = context.request().headers().get("x-amz-target");
        let operation = target.and_then(|target| target.rsplit('.').next());
        self.0.all.fetch_add(1, Ordering::SeqCst);
        if !matches!(operation, Some("GetItem" | "BatchGetItem" | "Query")) {
            self.0.writes.fetch_add(1, Ordering::SeqCst);
        }
        if operation == Some("BatchGetItem") {
            self.0.batches.fetch_add(1, Ordering::SeqCst);
        }
        let under_way = self.0.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most_at_once.fetch_max(under_way, Ordering::SeqCst);
        Ok(())
    }

    fn read_after_transmit(
        &self,
        _: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

/// The middle one, for wall time: so that what else the machine did meanwhile counts little.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The mean, for processor time: rounds of a few steps of 10 ms add up to a figure that one of them is too coarse for.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
