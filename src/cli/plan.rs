//! `plan`: what an apply would change. Also how apply comes to its plans.

use super::args::{self, Format, Guards, Planning};
use super::connect::{self, Purpose, Target};
use super::error::{CliError, allowed_by, refusal_line};
use super::exit::Exit;
use super::render::{markdown, text};
use super::saved::SavedPlan;
use super::{Context, files};
use crate::affected;
use crate::manifest::{Manifest, OutOfBand};
use crate::model::ManifestOwner;
use crate::plan::{Plan, PlanOptions, Policy, Refusal};
use crate::reconcile::prepare;
use crate::report::PlanReport;
use serde_json::{Value, json};

/// One namespace, planned.
pub(super) struct Planned {
    /// What was declared.
    pub(super) manifest: Manifest,
    /// What would change.
    pub(super) plan: Plan,
    /// Why it may not be applied.
    pub(super) refusals: Vec<Refusal>,
    /// The plan to show.
    pub(super) report: PlanReport,
}

pub(super) async fn run(context: &Context, args: &args::Plan) -> Result<Exit, CliError> {
    let only = connect::namespace(&context.global)?;
    let manifests = files::manifests(&args.file, only.as_ref())?;
    let target = connect::open(context, Purpose::ReadOrEmpty).await?;
    let options = options(&args.planning);
    let mut planned = Vec::new();
    for manifest in manifests {
        let policy = policy(&args.guards, None);
        let mut one = plan(&target, manifest, options, &policy).await?;
        if args.count_buckets {
            let counts = affected::count(&target.store, &one.plan).await?;
            one.report.add_affected(&counts);
        }
        planned.push(one);
    }
    warn(context, &planned);
    // Saved before anything is shown: a failure to save is then the one answer.
    if let Some(path) = &args.out {
        let plans: Vec<(Manifest, Plan)> = planned
            .iter()
            .map(|one| (one.manifest.clone(), one.plan.clone()))
            .collect();
        SavedPlan::new(&plans, options, target.table(), target.host()).write(path)?;
        let path = text::safe(&path.display().to_string());
        context.out.note(&format!(
            "Saved to {path}: apply it with `apply --plan {path}`."
        ));
    }
    match context.out.format {
        Format::Json => {
            let plans: Vec<Value> = planned.iter().map(json).collect();
            context
                .out
                .document("plan", json!({ "host": target.host(), "plans": plans }))?;
        }
        _ => context.out.answer(&shown(
            context,
            &planned,
            &target,
            Refusals::Shown,
            context.out.colours_stdout(),
        ))?,
    }
    let changes = planned.iter().any(|one| !one.plan.is_empty());
    Ok(if changes && args.detailed_exitcode {
        Exit::Changes
    } else {
        Exit::Done
    })
}

/// How a plan is made.
pub(super) fn options(planning: &Planning) -> PlanOptions {
    PlanOptions {
        out_of_band: match planning.out_of_band {
            args::OutOfBand::Keep => OutOfBand::Keep,
            args::OutOfBand::Revert => OutOfBand::Revert,
        },
        full: planning.full,
    }
}

/// What the caller allows. `reviewed` is the fingerprint of a saved plan.
pub(super) fn policy(guards: &Guards, reviewed: Option<String>) -> Policy {
    Policy {
        adopt: guards.adopt,
        allow_empty: guards.allow_empty,
        max_delete: guards.max_delete,
        reviewed,
        ..Policy::strict(ManifestOwner::Cli)
    }
}

/// Plans one manifest. Reads only.
///
/// # Errors
/// [`CliError::Store`] when the table cannot be read.
pub(super) async fn plan(
    target: &Target,
    manifest: Manifest,
    options: PlanOptions,
    policy: &Policy,
) -> Result<Planned, CliError> {
    let plan = prepare(&target.store, &manifest, None, options).await?;
    let refusals = plan.refusals(policy);
    let warnings = manifest
        .warnings()
        .iter()
        .map(ToString::to_string)
        .collect();
    let report = PlanReport::new(&plan, target.table(), warnings, &refusals);
    Ok(Planned {
        manifest,
        plan,
        refusals,
        report,
    })
}

/// Says on stderr what the manifests are warned about.
pub(super) fn warn(context: &Context, planned: &[Planned]) {
    if context.out.format == Format::Json {
        return;
    }
    for warning in planned.iter().flat_map(|one| &one.report.warnings) {
        context.out.note(&format!("warning: {warning}"));
    }
}

/// Why plans may not be applied, as part of the plans: what `plan` shows, and what of `apply` is an
/// error of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusals {
    /// They are shown.
    Shown,
    /// They are said elsewhere.
    Elsewhere,
}

/// Plans for people to read.
pub(super) fn shown(
    context: &Context,
    planned: &[Planned],
    target: &Target,
    refusals: Refusals,
    colours: bool,
) -> String {
    let one = |one: &Planned| {
        let refusals: Vec<String> = match refusals {
            Refusals::Shown => one.refusals.iter().map(refusal_line).collect(),
            Refusals::Elsewhere => Vec::new(),
        };
        match context.out.format {
            Format::Markdown => markdown::plan(&one.report, target.host(), &refusals),
            _ => {
                let verbose = context.global.verbose;
                text::plan(&one.report, target.host(), &refusals, verbose, colours)
            }
        }
    };
    planned.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

/// A plan for programs: the report, and for each refusal the flag that allows it.
pub(super) fn json(one: &Planned) -> Value {
    let mut plan = json!(one.report);
    let refusal = |refusal: &Refusal| json!({ "message": refusal.to_string(), "allowed_by": allowed_by(refusal) });
    plan["refusals"] = one.refusals.iter().map(refusal).collect();
    plan
}
