//! `apply`: plans, shows, asks, then brings the table to what the manifests declare.
//!
//! All manifests are planned, and pass their guards, before the first write.

use super::args::{self, Format};
use super::connect::{self, Purpose, Target};
use super::error::CliError;
use super::exit::Exit;
use super::plan::{self, Planned, Refusals};
use super::render::{markdown, text};
use super::saved::SavedPlan;
use super::work::Work;
use super::{Context, files, prompt};
use crate::manifest::Manifest;
use crate::plan::{GuardedPlan, PlanOptions};
use crate::reconcile::{self, ApplyOptions};
use crate::report::{ApplyReport, Status};
use serde_json::{Value, json};
use std::io::{self, IsTerminal};

/// What is to be applied, and how it was or will be planned.
struct Wanted {
    manifests: Vec<(Manifest, Option<String>)>,
    options: PlanOptions,
    saved: Option<SavedPlan>,
}

pub(super) async fn run(context: &Context, args: &args::Apply) -> Result<Exit, CliError> {
    let wanted = wanted(context, args)?;
    let asks = !args.yes && prompt::can_ask(context);
    // What cannot be confirmed is only shown: not even an embedded store is made for it.
    let purpose = if args.yes || asks {
        Purpose::Write
    } else {
        Purpose::ReadOrEmpty
    };
    let target = connect::open(context, purpose).await?;
    if let Some(saved) = &wanted.saved {
        saved.check_place(target.table(), target.host())?;
    }
    let mut planned = Vec::new();
    for (manifest, reviewed) in wanted.manifests {
        let policy = plan::policy(&args.guards, reviewed);
        planned.push(plan::plan(&target, manifest, wanted.options, &policy).await?);
    }
    plan::warn(context, &planned);
    show(context, &planned, &target, asks)?;
    if let Err(error) = allow(args, &planned, asks).await {
        let plans: Vec<Value> = planned.iter().map(plan::json).collect();
        return Ok(context
            .out
            .failed_with("apply", &error, json!({ "plans": plans })));
    }
    carry_out(context, args, &target, planned, wanted.options).await
}

fn wanted(context: &Context, args: &args::Apply) -> Result<Wanted, CliError> {
    let only = connect::namespace(&context.global)?;
    let Some(path) = &args.plan else {
        let manifests = files::manifests(&args.file, only.as_ref())?;
        return Ok(Wanted {
            manifests: manifests
                .into_iter()
                .map(|manifest| (manifest, None))
                .collect(),
            options: plan::options(&args.planning),
            saved: None,
        });
    };
    let saved = SavedPlan::read(path)?;
    let reviewed = saved.reviewed(path)?;
    let chosen = files::select(
        reviewed.iter().map(|(m, _)| m.clone()).collect(),
        only.as_ref(),
    )?;
    let is_chosen = |(manifest, _): &(Manifest, String)| {
        chosen
            .iter()
            .any(|chosen| chosen.namespace() == manifest.namespace())
    };
    Ok(Wanted {
        manifests: reviewed
            .into_iter()
            .filter(is_chosen)
            .map(|(manifest, fingerprint)| (manifest, Some(fingerprint)))
            .collect(),
        options: saved.options(),
        saved: Some(saved),
    })
}

/// Shows the plans where whoever decides sees them: on stdout with the answer, and on stderr when
/// a question follows and stdout goes elsewhere. That they are refused is the error that follows.
fn show(
    context: &Context,
    planned: &[Planned],
    target: &Target,
    asks: bool,
) -> Result<(), CliError> {
    let shown = |colours| plan::shown(context, planned, target, Refusals::Elsewhere, colours);
    let as_text = context.out.format != Format::Json;
    if as_text {
        context.out.answer(&shown(context.out.colours_stdout()))?;
        context.out.answer("")?;
    }
    if asks && !(as_text && io::stdout().is_terminal()) {
        context.out.say(&shown(context.out.colours_stderr()));
    }
    Ok(())
}

/// Passes the guards and the user.
async fn allow(args: &args::Apply, planned: &[Planned], asks: bool) -> Result<(), CliError> {
    let refusals = planned.iter().flat_map(|one| {
        let namespace = one.plan.namespace.to_string();
        one.refusals
            .iter()
            .map(move |refusal| (namespace.clone(), refusal.clone()))
    });
    let refusals: Vec<_> = refusals.collect();
    if !refusals.is_empty() {
        return Err(CliError::Refused(refusals));
    }
    let writes =
        |one: &Planned| !one.plan.is_empty() || one.plan.record_changes() || args.guards.adopt;
    if args.yes || !planned.iter().any(writes) {
        return Ok(());
    }
    if !asks {
        return Err(prompt::needs_yes("apply"));
    }
    prompt::confirm("Apply this?").await
}

/// Applies what was planned, in order. What follows a failure is not begun.
async fn carry_out(
    context: &Context,
    args: &args::Apply,
    target: &Target,
    planned: Vec<Planned>,
    options: PlanOptions,
) -> Result<Exit, CliError> {
    let work = Work::begin(context, &args.work);
    let mut reports = Vec::new();
    let mut failure = None;
    let wanted = planned.len();
    for one in planned {
        if work.settings.stop.is_set() {
            break;
        }
        let apply_options = ApplyOptions {
            principal: target.principal.clone(),
            fanout: work.settings.clone(),
            full: options.full,
            join: true,
            warnings: one.report.warnings.clone(),
            ..ApplyOptions::default()
        };
        let applied = match guarded(args, one) {
            Ok(guarded) => reconcile::apply(
                &target.store,
                &context.clock,
                &guarded,
                &apply_options,
                &work.bars,
            )
            .await
            .map_err(CliError::from),
            Err(error) => Err(error),
        };
        match applied {
            Ok(report) => {
                print(context, &report)?;
                reports.push(report);
            }
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    work.end();
    finish(context, &reports, wanted, failure)
}

/// The plan that may be applied. Guards were asked before; this is the only way to what they give.
fn guarded(args: &args::Apply, one: Planned) -> Result<GuardedPlan, CliError> {
    let namespace = one.plan.namespace.to_string();
    let refused = |refusals: Vec<_>| {
        let named = refusals
            .into_iter()
            .map(|refusal| (namespace.clone(), refusal));
        CliError::Refused(named.collect())
    };
    // The fingerprint was compared when the plan was made, and this is that plan.
    let policy = plan::policy(&args.guards, None);
    one.plan.guard(&policy).map_err(refused)
}

fn print(context: &Context, report: &ApplyReport) -> Result<(), CliError> {
    match context.out.format {
        Format::Json => {}
        Format::Markdown => context.out.answer(&markdown::apply(report))?,
        Format::Text => {
            let colours = context.out.colours_stdout();
            context
                .out
                .answer(&text::apply(report, context.global.verbose, colours))?;
        }
    }
    if context.out.format != Format::Json {
        for error in &report.errors {
            context.out.say(&format!("error: {}", text::safe(error)));
        }
    }
    Ok(())
}

fn finish(
    context: &Context,
    reports: &[ApplyReport],
    wanted: usize,
    failure: Option<CliError>,
) -> Result<Exit, CliError> {
    let partial = reports
        .iter()
        .any(|report| report.status == Status::Partial);
    let status = match (
        partial,
        reports
            .iter()
            .any(|report| report.status == Status::Applied),
    ) {
        (true, _) => Status::Partial,
        (false, true) => Status::Applied,
        (false, false) => Status::Unchanged,
    };
    let body = json!({ "status": status, "reports": reports });
    if let Some(error) = failure {
        return Ok(context.out.failed_with("apply", &error, body));
    }
    let left = partial || reports.len() < wanted;
    if let Some(signal) = context.interrupts.heard().filter(|_| left) {
        context
            .out
            .say("What is still owed is recorded. Run the same apply again to finish it.");
        let error = CliError::Interrupted { signal };
        return Ok(context.out.failed_with("apply", &error, body));
    }
    if context.out.format == Format::Json {
        context.out.document("apply", body)?;
    }
    Ok(if partial { Exit::Partial } else { Exit::Done })
}
