//! `resume`: finishes the fan-outs that interrupted applies left. Writes no level, so it asks nothing.

use super::args::{self, Format};
use super::connect::{self, Purpose};
use super::error::CliError;
use super::exit::Exit;
use super::render::{resume as render, text};
use super::work::Work;
use super::{Context, namespace};
use crate::reconcile::{self, ApplyOptions};
use crate::report::ResumeReport;
use serde_json::{Value, json};

pub(super) async fn run(context: &Context, args: &args::Resume) -> Result<Exit, CliError> {
    let named = connect::namespace(&context.global)?;
    let target = connect::open(context, Purpose::WriteExisting).await?;
    let (name, ns) = namespace::registered(&target, named).await?;
    let work = Work::begin(context, &args.work);
    let options = ApplyOptions {
        principal: target.principal.clone(),
        fanout: work.settings.clone(),
        join: true,
        ..ApplyOptions::default()
    };
    let (store, clock) = (&target.store, &context.clock);
    let resumed = reconcile::resume(store, clock, &ns, &options, &work.bars).await;
    work.end();
    let report = resumed?;
    print(context, &report, name.as_str())?;
    let body = json!({
        "namespace": name,
        "namespace_id": ns,
        "table": target.table(),
        "host": target.host(),
        "status": render::status(&report),
        "report": report,
    });
    finish(context, &report, body)
}

fn print(context: &Context, report: &ResumeReport, name: &str) -> Result<(), CliError> {
    let now = context.clock.now();
    match context.out.format {
        Format::Json => return Ok(()),
        Format::Markdown => context.out.answer(&render::markdown(report, name, now))?,
        Format::Text => {
            let (verbose, colours) = (context.global.verbose, context.out.colours_stdout());
            let text = render::text(report, name, now, verbose, colours);
            context.out.answer(&text)?;
        }
    }
    for error in &report.errors {
        context.out.say(&format!("error: {}", text::safe(error)));
    }
    Ok(())
}

fn finish(context: &Context, report: &ResumeReport, body: Value) -> Result<Exit, CliError> {
    let left = !report.is_complete();
    if let Some(signal) = context.interrupts.heard().filter(|_| left) {
        context
            .out
            .say("What is still owed is recorded. Run it again to finish it.");
        let error = CliError::Interrupted { signal };
        return Ok(context.out.failed_with("resume", &error, body));
    }
    if context.out.format == Format::Json {
        context.out.document("resume", body)?;
    }
    Ok(if left { Exit::Partial } else { Exit::Done })
}
